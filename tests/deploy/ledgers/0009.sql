-- A ledger of schema 0009: the one before, led there by the migrations; all of it, as something was changed or dropped.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE bills (
        market TEXT NOT NULL,
        day TEXT NOT NULL,
        instance_id TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        estimate INTEGER NOT NULL,
        estimated_at INTEGER NOT NULL,
        charged INTEGER,
        charged_at INTEGER,
        CONSTRAINT pk_bills PRIMARY KEY (market, day, instance_id),
        CONSTRAINT ck_bills_estimate CHECK (estimate >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE capacity (
        market TEXT NOT NULL,
        pool TEXT NOT NULL,
        is_there INTEGER NOT NULL,
        is_begun INTEGER NOT NULL,
        since INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        price INTEGER,
        version TEXT NOT NULL,
        evidence TEXT NOT NULL,
        there TEXT NOT NULL,
        away TEXT NOT NULL,
        looks INTEGER NOT NULL,
        CONSTRAINT pk_capacity PRIMARY KEY (market, pool),
        CONSTRAINT ck_capacity_is_there CHECK (is_there IN (0, 1)),
        CONSTRAINT ck_capacity_is_begun CHECK (is_begun IN (0, 1)),
        CONSTRAINT ck_capacity_price CHECK (price >= 0),
        CONSTRAINT ck_capacity_looks CHECK (looks >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE cooldowns (
        scope TEXT NOT NULL,
        "key" TEXT NOT NULL,
        until INTEGER NOT NULL,
        code TEXT NOT NULL,
        CONSTRAINT pk_cooldowns PRIMARY KEY (scope, "key")
    ) WITHOUT ROWID, STRICT
    ;
INSERT INTO "cooldowns" VALUES('host','118966',1785123321000000,'we left it a moment ago');
INSERT INTO "cooldowns" VALUES('host','146600',1785123736000000,'we left it a moment ago');
INSERT INTO "cooldowns" VALUES('host','68660',1785169062200000,'we left it a moment ago');
INSERT INTO "cooldowns" VALUES('host','94577',1785172717200000,'we left it a moment ago');
INSERT INTO "cooldowns" VALUES('offer','11085851',1785121975000000,'a bid that was too low');
INSERT INTO "cooldowns" VALUES('offer','31795030',1785167170100000,'a bid that was too low');
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-55030930',1785197057000000,'a start on host 118966');
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-55030961',1785207921000000,'a start on host 146600');
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-55031023',1785208336000000,'a start on host 68660');
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-55031126',1785253662200000,'a start on host 94577');
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-55031128',1785257317200000,'a start on host 68660');
INSERT INTO "cooldowns" VALUES('slot','train/0',1785170360200000,'a rent a moment ago');
CREATE TABLE decisions (
        decision_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        workload TEXT NOT NULL,
        slot INTEGER NOT NULL,
        kind TEXT NOT NULL,
        code TEXT NOT NULL,
        sentence TEXT NOT NULL,
        limit_name TEXT NOT NULL,
        options TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        offer_id TEXT NOT NULL,
        bid INTEGER,
        rate INTEGER,
        strategy TEXT NOT NULL,
        strategy_file TEXT NOT NULL,
        params_digest TEXT NOT NULL,
        CONSTRAINT ck_decisions_slot CHECK (slot >= 0),
        CONSTRAINT ck_decisions_bid CHECK (bid >= 0),
        CONSTRAINT ck_decisions_rate CHECK (rate >= 0)
    ) STRICT
    ;
INSERT INTO "decisions" VALUES(1,1785110400000000,'train',0,'rent','best_offer','rent 1x RTX 4090 on host 118966 at $0.2294/h bid over a floor of $0.2293/h: 402 DLPerf h/$, 0.251 $ per useful hour','','[{"dollars": 0.25061993646388897, "name": "chosen", "terms": [{"figure": 0.9046669889732598, "name": "gpu", "unit": "$"}, {"figure": 0.02068838382910904, "name": "disk", "unit": "$"}, {"figure": 0.019242222222222223, "name": "traffic", "unit": "$"}, {"figure": 0.020890193323968163, "name": "idle while loading", "unit": "$"}, {"figure": 0.04642265183104036, "name": "loading", "unit": "h"}, {"figure": 0.016666666666666666, "name": "restore", "unit": "h"}, {"figure": 0.07455759376566545, "name": "work lost", "unit": "h"}, {"figure": 3.8523981849611286, "name": "useful", "unit": "h"}, {"figure": 0.15124692040995164, "name": "interruptions", "unit": "/h"}, {"figure": 0.25061993646388897, "name": "per useful hour", "unit": "$/h"}, {"figure": 401.93349205433964, "name": "score", "unit": "DLPerf h/$"}]}]','','36566959',229400,234585,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(2,1785110402000000,'train',0,'hold','running','starting at $0.2294/h','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(3,1785121443000000,'train',0,'pause','cancel_start','move to host 146600 at $0.1667/h interruptible; first make sure that the old lease cannot start by itself: $0.417 over 2 h against wait $0.823, on_demand $0.697','','[{"dollars": 0.8227774934840363, "name": "wait", "terms": [{"figure": 0.09888586126365403, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.41439637284359504, "name": "useful", "unit": "h"}, {"figure": 0.7135216322203822, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.41719543182418073, "name": "move", "terms": [{"figure": 0.32133652387218814, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.007085555555555557, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8455258835634734, "name": "useful", "unit": "h"}, {"figure": 0.069513352396437, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9932643144618388, "name": "speed", "unit": ""}, {"figure": 0.37359448910368404, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6966339428142001, "name": "on_demand", "terms": [{"figure": 0.5319109204943915, "name": "gpu", "unit": "$"}, {"figure": 0.063704, "name": "disk", "unit": "$"}, {"figure": 0.02987444444444445, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8419009380547462, "name": "useful", "unit": "h"}, {"figure": 0.07114457787536421, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.97898593322847, "name": "speed", "unit": ""}, {"figure": 0.011135992770120737, "name": "interruptions", "unit": ""}]}]','vast-55030930','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(4,1785121444000000,'train',0,'rent','move','move to host 146600 at $0.1667/h interruptible: $0.417 over 2 h against resume $0.823, on_demand $0.697','','[{"dollars": 0.8229096732990222, "name": "resume", "terms": [{"figure": 0.09874840863646557, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.41379718963876305, "name": "useful", "unit": "h"}, {"figure": 0.7137912646625566, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.4171954269599667, "name": "move", "terms": [{"figure": 0.3213365251004124, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.007085555555555557, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.845525897102225, "name": "useful", "unit": "h"}, {"figure": 0.06951334630399873, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9932643144618388, "name": "speed", "unit": ""}, {"figure": 0.3735944448964521, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6966339428142001, "name": "on_demand", "terms": [{"figure": 0.5319109204943915, "name": "gpu", "unit": "$"}, {"figure": 0.063704, "name": "disk", "unit": "$"}, {"figure": 0.02987444444444445, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8419009380547462, "name": "useful", "unit": "h"}, {"figure": 0.07114457787536421, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.97898593322847, "name": "speed", "unit": ""}, {"figure": 0.011135992770120737, "name": "interruptions", "unit": ""}]}]','','47337423',166700,176330,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(5,1785121446000000,'train',0,'hold','moving','waits for host 146600 to be ready','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(6,1785121521000000,'train',0,'release','moved','the workload runs on another host','','[]','vast-55030930','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(7,1785121524000000,'train',0,'hold','running','running at $0.1667/h','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(8,1785121854000000,'train',0,'pause','cancel_start','move to host 11096 at $0.2230/h interruptible; first make sure that the old lease cannot start by itself: $0.628 over 2 h against wait $0.805, on_demand $0.803','','[{"dollars": 0.8048236118423289, "name": "wait", "terms": [{"figure": 0.07175007379415375, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.4137476932262773, "name": "useful", "unit": "h"}, {"figure": 0.7138135380481752, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6284409800761435, "name": "move", "terms": [{"figure": 0.40657014213041853, "name": "gpu", "unit": "$"}, {"figure": 0.063704, "name": "disk", "unit": "$"}, {"figure": 0.02987444444444445, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.7149057922193767, "name": "useful", "unit": "h"}, {"figure": 0.1282923935012805, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9856247918852244, "name": "speed", "unit": ""}, {"figure": 0.470120183071092, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8033823498829034, "name": "on_demand", "terms": [{"figure": 0.7401809426064239, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.027821111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9641771196325148, "name": "useful", "unit": "h"}, {"figure": 0.01612029616536832, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.012603591135396382, "name": "interruptions", "unit": ""}]}]','vast-55030961','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(9,1785121855000000,'train',0,'rent','move','move to host 11096 at $0.2230/h interruptible: $0.628 over 2 h against resume $0.805, on_demand $0.803','','[{"dollars": 0.804993465193738, "name": "resume", "terms": [{"figure": 0.07165012831699209, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.41314814027389785, "name": "useful", "unit": "h"}, {"figure": 0.714083336876746, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6284409687395671, "name": "move", "terms": [{"figure": 0.40657014636124433, "name": "gpu", "unit": "$"}, {"figure": 0.063704, "name": "disk", "unit": "$"}, {"figure": 0.02987444444444445, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.7149058268136037, "name": "useful", "unit": "h"}, {"figure": 0.12829237793387835, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9856247918852244, "name": "speed", "unit": ""}, {"figure": 0.4701200692372131, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8033823498829034, "name": "on_demand", "terms": [{"figure": 0.7401809426064239, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.027821111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9641771196325148, "name": "useful", "unit": "h"}, {"figure": 0.01612029616536832, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.012603591135396382, "name": "interruptions", "unit": ""}]}]','','11085851',223000,254852,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(10,1785121857000000,'train',0,'release','release_again','the market has not confirmed the release','','[]','vast-55030989','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(11,1785121860000000,'train',0,'rent','move','move to host 68660 at $0.3307/h interruptible: $0.759 over 2 h against resume $0.806','','[{"dollars": 0.8058441851674918, "name": "resume", "terms": [{"figure": 0.07114954582625876, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.4101452459083709, "name": "useful", "unit": "h"}, {"figure": 0.7154346393412331, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.7589159404566572, "name": "move", "terms": [{"figure": 0.629255508528875, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.027821111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8164903981851752, "name": "useful", "unit": "h"}, {"figure": 0.08257932081667116, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.4915875525862287, "name": "interruptions", "unit": ""}]}]','','25430165',330700,340330,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(12,1785121861000000,'train',0,'hold','moving','waits for host 68660 to be ready','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(13,1785121936000000,'train',0,'release','moved','the workload runs on another host','','[]','vast-55030961','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(14,1785121939000000,'train',0,'hold','running','running at $0.3307/h','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(15,1785166219000000,'train',0,'pause','cancel_start','move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.876, on_demand $0.874','','[{"dollars": 0.876090494317089, "name": "wait", "terms": [{"figure": 0.1404560396424029, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.40805676738958646, "name": "useful", "unit": "h"}, {"figure": 0.7163744546746861, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.2713426689714413, "name": "move", "terms": [{"figure": 0.15904673647910159, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.03342111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8576426191528252, "name": "useful", "unit": "h"}, {"figure": 0.06406082138122864, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.3449484494057554, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8738770151034577, "name": "on_demand", "terms": [{"figure": 0.807249149813901, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.0190573830071676, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9173322615946908, "name": "useful", "unit": "h"}, {"figure": 0.037200482282389126, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021578212541031637, "name": "interruptions", "unit": ""}]}]','vast-55031023','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(16,1785166220000000,'train',0,'rent','move','move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.876, on_demand $0.874','','[{"dollars": 0.876162407893746, "name": "resume", "terms": [{"figure": 0.14025669496679133, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.40745397127343413, "name": "useful", "unit": "h"}, {"figure": 0.7166457129269547, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.27134266691091946, "name": "move", "terms": [{"figure": 0.15904673670636907, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.03342111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8576426242368016, "name": "useful", "unit": "h"}, {"figure": 0.06406081909343929, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.34494843291718397, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8738770150065955, "name": "on_demand", "terms": [{"figure": 0.8072491529216212, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.019057383141211078, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9173322690138594, "name": "useful", "unit": "h"}, {"figure": 0.03720047894376325, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021578214478797037, "name": "interruptions", "unit": ""}]}]','','31795030',82700,90107,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(17,1785166222000000,'train',0,'hold','moving','waits for host 94577 to be ready','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(18,1785166808000000,'train',0,'release','move_lost','lost before it was ready; the old lease stays','','[]','vast-55031062','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(19,1785166810000000,'train',0,'resume','resume','start it again where it stands: $0.915 over 2 h against on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "resume", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886660872552, "name": "on_demand", "terms": [{"figure": 0.8304626947446995, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.019057462211718404, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.917336646375917, "name": "useful", "unit": "h"}, {"figure": 0.03719850913083738, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021579357559619664, "name": "interruptions", "unit": ""}]}]','vast-55031023','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(20,1785166811000000,'train',0,'hold','wait_paused','wait for it to resume at $0.3307/h (1.90 h expected): $0.915 over 2 h against on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "wait", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886660796935, "name": "on_demand", "terms": [{"figure": 0.8304626979418518, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.019057462345710544, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.917336653795264, "name": "useful", "unit": "h"}, {"figure": 0.037198505792131166, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.002157935949670454, "name": "interruptions", "unit": ""}]}]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(21,1785167048100000,'train',0,'pause','cancel_start','move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.915, on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "wait", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.2713409605267602, "name": "move", "terms": [{"figure": 0.159046924913851, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.03342111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8576468344404486, "name": "useful", "unit": "h"}, {"figure": 0.0640589245017981, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.34493477820265245, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886642839823, "name": "on_demand", "terms": [{"figure": 0.8304634559901058, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.01905749411279586, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.917338412930932, "name": "useful", "unit": "h"}, {"figure": 0.03719771418108055, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021579818747029774, "name": "interruptions", "unit": ""}]}]','vast-55031023','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(22,1785167050100000,'train',0,'rent','move','move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.915, on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "resume", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.27134095640539746, "name": "move", "terms": [{"figure": 0.15904692536842116, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.03342111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8576468446091885, "name": "useful", "unit": "h"}, {"figure": 0.06405891992586518, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.34493474522295625, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886642688111, "name": "on_demand", "terms": [{"figure": 0.8304634623844687, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.019057494380738702, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9173384277697694, "name": "useful", "unit": "h"}, {"figure": 0.03719770750360379, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021579822620650126, "name": "interruptions", "unit": ""}]}]','','31795030',82700,90107,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(23,1785167052100000,'train',0,'release','release_again','the market has not confirmed the release','','[]','vast-55031089','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(24,1785167055100000,'train',0,'resume','resume','start it again where it stands: $0.915 over 2 h against on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "resume", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886642308813, "name": "on_demand", "terms": [{"figure": 0.830463478370378, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.01905749505059428, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.917338464866869, "name": "useful", "unit": "h"}, {"figure": 0.03719769080990896, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.002157983230468084, "name": "interruptions", "unit": ""}]}]','vast-55031023','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(25,1785167056100000,'train',0,'hold','wait_paused','wait for it to resume at $0.3307/h (1.90 h expected): $0.915 over 2 h against on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "wait", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.897088664223295, "name": "on_demand", "terms": [{"figure": 0.8304634815675603, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.019057495184565138, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9173384722862898, "name": "useful", "unit": "h"}, {"figure": 0.037197687471169576, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021579834241483528, "name": "interruptions", "unit": ""}]}]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(26,1785167183200000,'train',0,'pause','cancel_start','move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.915, on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "wait", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.2713406821269828, "name": "move", "terms": [{"figure": 0.15904695562025484, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.03342111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8576475213430736, "name": "useful", "unit": "h"}, {"figure": 0.06405861539561686, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.3449325504103554, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886632582672, "name": "on_demand", "terms": [{"figure": 0.8304638879304156, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.019057512211553898, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9173394152971164, "name": "useful", "unit": "h"}, {"figure": 0.03719726311629763, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021580080399733596, "name": "interruptions", "unit": ""}]}]','vast-55031023','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(27,1785167185200000,'train',0,'rent','move','move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.915, on_demand $0.897','','[{"dollars": 0.9152179205662004, "name": "resume", "terms": [{"figure": 0.03199468288983662, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.0800816940525248, "name": "useful", "unit": "h"}, {"figure": 0.8639632376763638, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.2713406780055683, "name": "move", "terms": [{"figure": 0.15904695607483071, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.03342111111111112, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8576475315119412, "name": "useful", "unit": "h"}, {"figure": 0.06405861081962648, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.34493251743024395, "name": "interruptions", "unit": ""}]}, {"dollars": 0.8970886632430688, "name": "on_demand", "terms": [{"figure": 0.8304638943248114, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.01905751247947327, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9173394301360351, "name": "useful", "unit": "h"}, {"figure": 0.03719725643878419, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0021580084273042886, "name": "interruptions", "unit": ""}]}]','','31795030',82700,90107,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(28,1785167187200000,'train',0,'hold','moving','waits for host 94577 to be ready','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(29,1785167262200000,'train',0,'release','moved','the workload runs on another host','','[]','vast-55031023','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(30,1785167265200000,'train',0,'hold','running','running at $0.0827/h','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(31,1785167760200000,'train',0,'rebid','raise_bid','raise the bid from $0.0827/h to $0.2160/h to beat $0.2150/h: $0.617 over 2 h against wait $0.766, raise $0.630, on_demand $0.905','','[{"dollars": 0.765586863733587, "name": "wait", "terms": [{"figure": 0.035288140945364435, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.4100339493595055, "name": "useful", "unit": "h"}, {"figure": 0.7154847227882225, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6173011537578021, "name": "raise", "terms": [{"figure": 0.3201723840848577, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.3726338451712345, "name": "useful", "unit": "h"}, {"figure": 0.28231476967294444, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.6563226643095098, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6303279124213407, "name": "raise", "terms": [{"figure": 0.33729753947967633, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.381741393462968, "name": "useful", "unit": "h"}, {"figure": 0.27821637294166435, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.6267846698498337, "name": "interruptions", "unit": ""}]}, {"dollars": 0.9046237883506909, "name": "on_demand", "terms": [{"figure": 0.8304657327338126, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.01905758949188982, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9005989641666925, "name": "useful", "unit": "h"}, {"figure": 0.04473046612498838, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9912667028661016, "name": "speed", "unit": ""}, {"figure": 0.0021581197658512206, "name": "interruptions", "unit": ""}]}]','vast-55031126','',216000,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(32,1785167761200000,'train',0,'hold','raised','the bid was raised to $0.2160/h a moment ago; the market may give it back','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(33,1785167881200000,'train',0,'rebid','raise_bid','raise the bid from $0.2160/h to $0.2268/h to beat $0.2150/h: $0.630 over 2 h against wait $0.840, on_demand $0.905','','[{"dollars": 0.840096636915322, "name": "wait", "terms": [{"figure": 0.07589295053970284, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.33468958583195757, "name": "useful", "unit": "h"}, {"figure": 0.7493896863756191, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.6303240307962478, "name": "raise", "terms": [{"figure": 0.3372989929262193, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.3817532491777145, "name": "useful", "unit": "h"}, {"figure": 0.2782110378700285, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.6267462188830879, "name": "interruptions", "unit": ""}]}, {"dollars": 0.9046237909517454, "name": "on_demand", "terms": [{"figure": 0.8304661196041253, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.01905760569432515, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.900599854103789, "name": "useful", "unit": "h"}, {"figure": 0.04473006565329497, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9912667028661016, "name": "speed", "unit": ""}, {"figure": 0.002158143190507593, "name": "interruptions", "unit": ""}]}]','vast-55031126','',226800,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(34,1785167883200000,'train',0,'hold','raised','the bid was raised to $0.2268/h a moment ago; the market may give it back','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(35,1785168003200000,'train',0,'hold','wait_paused','wait for it to resume at $0.2268/h (1.73 h expected): $0.862 over 2 h against on_demand $0.905','','[{"dollars": 0.8620565865857629, "name": "wait", "terms": [{"figure": 0.06122930717898289, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.2533038235404889, "name": "useful", "unit": "h"}, {"figure": 0.78601327940678, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.9046237935728316, "name": "on_demand", "terms": [{"figure": 0.8304665096735087, "name": "gpu", "unit": "$"}, {"figure": 0.01037, "name": "disk", "unit": "$"}, {"figure": 0.01905762202937815, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.9006007514001226, "name": "useful", "unit": "h"}, {"figure": 0.044729661869944815, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9912667028661016, "name": "speed", "unit": ""}, {"figure": 0.002158166807050256, "name": "interruptions", "unit": ""}]}]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(36,1785168378200000,'train',0,'hold','running','starting at $0.2268/h','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(37,1785170299200000,'train',0,'pause','cancel_start','move to host 68660 at $0.3307/h interruptible; first make sure that the old lease cannot start by itself: $0.748 over 2 h against wait $0.826','','[{"dollars": 0.8261393925377031, "name": "wait", "terms": [{"figure": 0.097725810808463, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.41422315171279983, "name": "useful", "unit": "h"}, {"figure": 0.7135995817292401, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.7481672605965328, "name": "move", "terms": [{"figure": 0.6421688130580206, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.027552465367877844, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.868475595176368, "name": "useful", "unit": "h"}, {"figure": 0.059185982170634366, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9860107237694141, "name": "speed", "unit": ""}, {"figure": 0.21314328953489267, "name": "interruptions", "unit": ""}]}]','vast-55031126','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(38,1785170300200000,'train',0,'rent','move','move to host 68660 at $0.3307/h interruptible: $0.748 over 2 h against resume $0.826','','[{"dollars": 0.8262731522672566, "name": "resume", "terms": [{"figure": 0.09758989366391668, "name": "gpu", "unit": "$"}, {"figure": 0.014814, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "traffic and lost work", "unit": "$"}, {"figure": 0.41362386977035576, "name": "useful", "unit": "h"}, {"figure": 0.7138692586033399, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.7481672623910969, "name": "move", "terms": [{"figure": 0.6421688127189703, "name": "gpu", "unit": "$"}, {"figure": 0.01926, "name": "disk", "unit": "$"}, {"figure": 0.027552465562588616, "name": "traffic and lost work", "unit": "$"}, {"figure": 1.8684755908676933, "name": "useful", "unit": "h"}, {"figure": 0.05918598410953801, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9860107237694141, "name": "speed", "unit": ""}, {"figure": 0.2131433131435139, "name": "interruptions", "unit": ""}]}]','','25430165',330700,340330,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(39,1785170302200000,'train',0,'hold','moving','waits for host 68660 to be ready','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(40,1785170917200000,'train',0,'release','moved','the workload runs on another host','','[]','vast-55031126','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
INSERT INTO "decisions" VALUES(41,1785170920200000,'train',0,'hold','running','running at $0.3307/h','','[]','','',NULL,NULL,'patient','/opt/gpubid/strategies/patient.toml','27e91214d0d5685f');
CREATE TABLE events (
        event_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        seen_at INTEGER,
        workload TEXT NOT NULL,
        slot INTEGER,
        lease_id TEXT NOT NULL,
        intent_id TEXT NOT NULL,
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        cause TEXT,
        rule TEXT NOT NULL,
        evidence TEXT NOT NULL,
        bid INTEGER,
        floor INTEGER,
        rate INTEGER,
        amount INTEGER,
        reason_code TEXT NOT NULL,
        reason TEXT NOT NULL,
        CONSTRAINT ck_events_kind CHECK (kind GLOB '?*.?*'),
        CONSTRAINT ck_events_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop',
            'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
        CONSTRAINT ck_events_bid CHECK (bid >= 0),
        CONSTRAINT ck_events_floor CHECK (floor >= 0),
        CONSTRAINT ck_events_rate CHECK (rate >= 0)
    ) STRICT
    ;
INSERT INTO "events" VALUES(1,1785110400000000,'lease.opened',NULL,'train',0,'','c8eab7aff7cff031','vast','118966',NULL,'','',229400,NULL,234585,NULL,'best_offer','rent 1x RTX 4090 on host 118966 at $0.2294/h bid over a floor of $0.2293/h: 402 DLPerf h/$, 0.251 $ per useful hour');
INSERT INTO "events" VALUES(2,1785110649959440,'lease.running',1785110657000000,'train',0,'vast-55030930','c8eab7aff7cff031','vast','118966',NULL,'','',229400,NULL,234585,2427,'','');
INSERT INTO "events" VALUES(3,1785121441970705,'lease.interrupted',1785121443000000,'train',0,'vast-55030930','c8eab7aff7cff031','vast','118966','displaced','inbox','the market''s inbox says outbid at 03:04:01: new floor $1.0300/h, our bid $0.2294/h',229400,1035000,5185,18570,'','');
INSERT INTO "events" VALUES(4,1785121443000000,'lease.paused',NULL,'train',0,'vast-55030930','989dc56f2b1412be','vast','118966',NULL,'','',NULL,NULL,234585,NULL,'cancel_start','move to host 146600 at $0.1667/h interruptible; first make sure that the old lease cannot start by itself: $0.417 over 2 h against wait $0.823, on_demand $0.697');
INSERT INTO "events" VALUES(5,1785121444000000,'lease.opened',NULL,'train',0,'','b286d50c9a1a5425','vast','146600',NULL,'','',166700,NULL,176330,NULL,'move','move to host 146600 at $0.1667/h interruptible: $0.417 over 2 h against resume $0.823, on_demand $0.697');
INSERT INTO "events" VALUES(6,1785121512873996,'lease.running',1785121521000000,'train',0,'vast-55030961','b286d50c9a1a5425','vast','146600',NULL,'','',166700,NULL,176330,1566,'','');
INSERT INTO "events" VALUES(7,1785121521000000,'lease.released_by_us',NULL,'train',0,'vast-55030930','64a4e432f300dacf','vast','118966',NULL,'','',NULL,NULL,NULL,NULL,'moved','the workload runs on another host');
INSERT INTO "events" VALUES(8,1785121521000000,'lease.released',1785121524000000,'train',0,'vast-55030930','c8eab7aff7cff031','vast','118966',NULL,'','',229400,NULL,0,0,'','moved');
INSERT INTO "events" VALUES(9,1785121851888124,'lease.interrupted',1785121854000000,'train',0,'vast-55030961','b286d50c9a1a5425','vast','146600','displaced','inbox','the market''s inbox says outbid at 03:10:51: new floor $0.7700/h, our bid $0.1667/h',166700,775000,9630,1421,'','');
INSERT INTO "events" VALUES(10,1785121854000000,'lease.paused',NULL,'train',0,'vast-55030961','eb57d48009674cd3','vast','146600',NULL,'','',NULL,NULL,176330,NULL,'cancel_start','move to host 11096 at $0.2230/h interruptible; first make sure that the old lease cannot start by itself: $0.628 over 2 h against wait $0.805, on_demand $0.803');
INSERT INTO "events" VALUES(11,1785121855000000,'intent.rejected',NULL,'train',0,'','8b8266ed7f94bc77','vast','11096',NULL,'','',223000,NULL,254852,NULL,'move','bid_too_low: vast left 55030989 stopped, billing its disk (200 without a code).');
INSERT INTO "events" VALUES(12,1785121855000000,'lease.leftover',NULL,'train',0,'','8b8266ed7f94bc77','vast','11096',NULL,'','',223000,NULL,254852,NULL,'move','a refused bid left it behind');
INSERT INTO "events" VALUES(13,1785121857000000,'lease.released_by_us',NULL,'train',0,'vast-55030989','c23d038a3be31a7e','vast','11096',NULL,'','',NULL,NULL,NULL,NULL,'release_again','the market has not confirmed the release');
INSERT INTO "events" VALUES(14,1785121857000000,'lease.released',1785121860000000,'train',0,'vast-55030989','8b8266ed7f94bc77','vast','11096',NULL,'','',223000,NULL,0,0,'','bid_too_low');
INSERT INTO "events" VALUES(15,1785121860000000,'lease.opened',NULL,'train',0,'','f637c4caf7840f4a','vast','68660',NULL,'','',330700,NULL,340330,NULL,'move','move to host 68660 at $0.3307/h interruptible: $0.759 over 2 h against resume $0.806');
INSERT INTO "events" VALUES(16,1785121929562663,'lease.running',1785121936000000,'train',0,'vast-55031023','f637c4caf7840f4a','vast','68660',NULL,'','',330700,NULL,340330,2332,'','');
INSERT INTO "events" VALUES(17,1785121936000000,'lease.released_by_us',NULL,'train',0,'vast-55030961','59fb4b8f803fc33c','vast','146600',NULL,'','',NULL,NULL,NULL,NULL,'moved','the workload runs on another host');
INSERT INTO "events" VALUES(18,1785121936000000,'lease.released',1785121939000000,'train',0,'vast-55030961','b286d50c9a1a5425','vast','146600',NULL,'','',166700,NULL,0,0,'','moved');
INSERT INTO "events" VALUES(19,1785166207419060,'lease.interrupted',1785166219000000,'train',0,'vast-55031023','f637c4caf7840f4a','vast','68660','displaced','inbox','the market''s inbox says outbid at 15:30:07: new floor $0.9300/h, our bid $0.3307/h',330700,935000,9630,16047,'','');
INSERT INTO "events" VALUES(20,1785166219000000,'lease.paused',NULL,'train',0,'vast-55031023','b891656421b76381','vast','68660',NULL,'','',NULL,NULL,340330,NULL,'cancel_start','move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.876, on_demand $0.874');
INSERT INTO "events" VALUES(21,1785166220000000,'lease.opened',NULL,'train',0,'','ddd18994eda6b9eb','vast','94577',NULL,'','',82700,NULL,90107,NULL,'move','move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.876, on_demand $0.874');
INSERT INTO "events" VALUES(22,1785166792852878,'lease.start_lost',1785166808000000,'train',0,'vast-55031062','ddd18994eda6b9eb','vast','94577','displaced','inbox','the market''s inbox says outbid at 15:39:52: new floor $0.7100/h, our bid $0.0827/h',82700,715000,7407,1183,'','');
INSERT INTO "events" VALUES(23,1785166808000000,'lease.released_by_us',NULL,'train',0,'vast-55031062','d34c0ea1d835180f','vast','94577',NULL,'','',NULL,NULL,NULL,NULL,'move_lost','lost before it was ready; the old lease stays');
INSERT INTO "events" VALUES(24,1785166808000000,'lease.released',1785166810000000,'train',0,'vast-55031062','ddd18994eda6b9eb','vast','94577',NULL,'','',82700,NULL,0,0,'','move_lost');
INSERT INTO "events" VALUES(25,1785166810000000,'lease.queued',NULL,'train',0,'vast-55031023','081faf7ab5289e3e','vast','68660',NULL,'','',NULL,NULL,340330,NULL,'resume','start it again where it stands: $0.915 over 2 h against on_demand $0.897');
INSERT INTO "events" VALUES(26,1785167048100000,'lease.paused',NULL,'train',0,'vast-55031023','717ba117ab82f049','vast','68660',NULL,'','',NULL,NULL,340330,NULL,'cancel_start','move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.915, on_demand $0.897');
INSERT INTO "events" VALUES(27,1785167050100000,'intent.rejected',NULL,'train',0,'','9d9808c8a7045041','vast','94577',NULL,'','',82700,NULL,90107,NULL,'move','bid_too_low: vast left 55031089 stopped, billing its disk (200 without a code).');
INSERT INTO "events" VALUES(28,1785167050100000,'lease.leftover',NULL,'train',0,'','9d9808c8a7045041','vast','94577',NULL,'','',82700,NULL,90107,NULL,'move','a refused bid left it behind');
INSERT INTO "events" VALUES(29,1785167052100000,'lease.released_by_us',NULL,'train',0,'vast-55031089','4d6aa20d3d3c4d59','vast','94577',NULL,'','',NULL,NULL,NULL,NULL,'release_again','the market has not confirmed the release');
INSERT INTO "events" VALUES(30,1785167052100000,'lease.released',1785167055100000,'train',0,'vast-55031089','9d9808c8a7045041','vast','94577',NULL,'','',82700,NULL,0,0,'','bid_too_low');
INSERT INTO "events" VALUES(31,1785167055100000,'lease.queued',NULL,'train',0,'vast-55031023','3021f0a12ad1e849','vast','68660',NULL,'','',NULL,NULL,340330,NULL,'resume','start it again where it stands: $0.915 over 2 h against on_demand $0.897');
INSERT INTO "events" VALUES(32,1785167183200000,'lease.paused',NULL,'train',0,'vast-55031023','374a07e34da46771','vast','68660',NULL,'','',NULL,NULL,340330,NULL,'cancel_start','move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.915, on_demand $0.897');
INSERT INTO "events" VALUES(33,1785167185200000,'lease.opened',NULL,'train',0,'','2b908152850c0544','vast','94577',NULL,'','',82700,NULL,90107,NULL,'move','move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.915, on_demand $0.897');
INSERT INTO "events" VALUES(34,1785167252425831,'lease.running',1785167262200000,'train',0,'vast-55031126','2b908152850c0544','vast','94577',NULL,'','',82700,NULL,90107,1497,'','');
INSERT INTO "events" VALUES(35,1785167262200000,'lease.released_by_us',NULL,'train',0,'vast-55031023','1c5bd02ce892a1f4','vast','68660',NULL,'','',NULL,NULL,NULL,NULL,'moved','the workload runs on another host');
INSERT INTO "events" VALUES(36,1785167262200000,'lease.released',1785167265200000,'train',0,'vast-55031023','f637c4caf7840f4a','vast','68660',NULL,'','',330700,NULL,0,0,'','moved');
INSERT INTO "events" VALUES(37,1785167751903082,'lease.interrupted',1785167760200000,'train',0,'vast-55031126','2b908152850c0544','vast','94577','outbid','inbox','the market''s inbox says outbid at 15:55:51: new floor $0.2100/h, our bid $0.0827/h',82700,215000,7407,4715,'','');
INSERT INTO "events" VALUES(38,1785167760200000,'lease.rebid',NULL,'train',0,'vast-55031126','a054b6df0eefc8d1','vast','94577',NULL,'','',216000,NULL,223407,NULL,'raise_bid','raise the bid from $0.0827/h to $0.2160/h to beat $0.2150/h: $0.617 over 2 h against wait $0.766, raise $0.630, on_demand $0.905');
INSERT INTO "events" VALUES(39,1785167881200000,'lease.rebid',NULL,'train',0,'vast-55031126','3c6fcd5fc1787f6b','vast','94577',NULL,'','',226800,NULL,234207,NULL,'raise_bid','raise the bid from $0.2160/h to $0.2268/h to beat $0.2150/h: $0.630 over 2 h against wait $0.840, on_demand $0.905');
INSERT INTO "events" VALUES(40,1785168378200000,'lease.starting',1785168378200000,'train',0,'vast-55031126','2b908152850c0544','vast','94577',NULL,'','',226800,NULL,7407,401,'','');
INSERT INTO "events" VALUES(41,1785168385700000,'lease.resumed',1785168393200000,'train',0,'vast-55031126','2b908152850c0544','vast','94577',NULL,'','',226800,NULL,234207,503,'','');
INSERT INTO "events" VALUES(42,1785170297881551,'lease.interrupted',1785170299200000,'train',0,'vast-55031126','2b908152850c0544','vast','94577','displaced','inbox','the market''s inbox says outbid at 16:38:17: new floor $0.3500/h, our bid $0.2268/h',226800,355000,7407,6813,'','');
INSERT INTO "events" VALUES(43,1785170299200000,'lease.paused',NULL,'train',0,'vast-55031126','616944eed921e314','vast','94577',NULL,'','',NULL,NULL,234207,NULL,'cancel_start','move to host 68660 at $0.3307/h interruptible; first make sure that the old lease cannot start by itself: $0.748 over 2 h against wait $0.826');
INSERT INTO "events" VALUES(44,1785170300200000,'lease.opened',NULL,'train',0,'','6996fd31dba22d1b','vast','68660',NULL,'','',330700,NULL,340330,NULL,'move','move to host 68660 at $0.3307/h interruptible: $0.748 over 2 h against resume $0.826');
INSERT INTO "events" VALUES(45,1785170915808785,'lease.running',1785170917200000,'train',0,'vast-55031128','6996fd31dba22d1b','vast','68660',NULL,'','',330700,NULL,340330,2191,'','');
INSERT INTO "events" VALUES(46,1785170917200000,'lease.released_by_us',NULL,'train',0,'vast-55031126','4c808f09a93d7577','vast','94577',NULL,'','',NULL,NULL,NULL,NULL,'moved','the workload runs on another host');
INSERT INTO "events" VALUES(47,1785170917200000,'lease.released',1785170920200000,'train',0,'vast-55031126','2b908152850c0544','vast','94577',NULL,'','',226800,NULL,0,0,'','moved');
CREATE TABLE hosts (
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        owner_id TEXT NOT NULL,
        running_seconds REAL NOT NULL,
        interruptions REAL NOT NULL,
        starts_ok REAL NOT NULL,
        starts_failed REAL NOT NULL,
        updated_at INTEGER,
        market_losses REAL NOT NULL,
        bid_seconds REAL NOT NULL,
        loaded_gb REAL NOT NULL,
        loading_seconds REAL NOT NULL,
        displaced REAL NOT NULL,
        outbids TEXT NOT NULL,
        weighed_hours REAL NOT NULL,
        CONSTRAINT pk_hosts PRIMARY KEY (market, host_id),
        CONSTRAINT ck_hosts_running_seconds CHECK (running_seconds >= 0),
        CONSTRAINT ck_hosts_interruptions CHECK (interruptions >= 0),
        CONSTRAINT ck_hosts_starts_ok CHECK (starts_ok >= 0),
        CONSTRAINT ck_hosts_starts_failed CHECK (starts_failed >= 0),
        CONSTRAINT ck_hosts_market_losses CHECK (market_losses >= 0),
        CONSTRAINT ck_hosts_bid_seconds CHECK (bid_seconds >= 0),
        CONSTRAINT ck_hosts_loaded_gb CHECK (loaded_gb >= 0),
        CONSTRAINT ck_hosts_loading_seconds CHECK (loading_seconds >= 0),
        CONSTRAINT ck_hosts_displaced CHECK (displaced >= 0),
        CONSTRAINT ck_hosts_weighed_hours CHECK (weighed_hours >= 0)
    ) WITHOUT ROWID, STRICT
    ;
INSERT INTO "hosts" VALUES('vast','118966','5909',1.07467095169227141017e+04,1.0,9.91384222183114061088e-01,0.0,1785121443000000,1.0,1.07467095169227141017e+04,4.95692111091557396918e+00,2.47805845001726879664e+02,0.0,'{"steps": []}',1.31169560048217803682e+00);
INSERT INTO "hosts" VALUES('vast','146600','609463',3.39004446818543669905e+02,1.0,0.99973288520567,0.0,1785121854000000,1.0,3.39004446818543669905e+02,4.99866442602835,6.88555987367237918314e+01,0.0,'{"steps": []}',4.13773760922411387719e-02);
INSERT INTO "hosts" VALUES('vast','68660','564213',6.7995097203262092082e+04,9.75828038916055073848e-01,1.92128217031682946291e+00,0.0,1785196719200000,9.75828038916055073848e-01,6.7995097203262092082e+04,9.60641085158415108935e+00,668.50879000461,0.0,'{"steps": []}',8.29917936419815660542e+00);
INSERT INTO "hosts" VALUES('vast','94577','344149',2.40934416267024289473e+03,1.99796515102140537223e+00,9.97566521291819885419e-01,0.0,1785170299200000,1.99796515102140537223e+00,2.40934416267024289473e+03,4.9878326064591,6.70622383716217740357e+01,0.0,'{"steps": []}',2.94073840299251321184e-01);
CREATE TABLE intents (
        intent_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        market TEXT NOT NULL,
        workload TEXT NOT NULL,
        slot INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL,
        reason TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        offer_id TEXT NOT NULL,
        host_id TEXT NOT NULL,
        instance_id TEXT NOT NULL,
        tenure TEXT,
        price INTEGER,
        rate INTEGER NOT NULL,
        disk_gb REAL NOT NULL,
        sent_at INTEGER,
        doubted_at INTEGER,
        resolved_at INTEGER,
        outcome TEXT NOT NULL,
        CONSTRAINT pk_intents PRIMARY KEY (intent_id),
        CONSTRAINT ck_intents_kind CHECK (kind IN ('pause', 'rebid', 'release', 'rent', 'resume')),
        CONSTRAINT ck_intents_state CHECK (state IN ('confirmed', 'denied', 'in_doubt', 'recorded', 'rejected',
            'sent', 'void')),
        CONSTRAINT ck_intents_slot CHECK (slot >= 0),
        CONSTRAINT ck_intents_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
        CONSTRAINT ck_intents_price CHECK (price >= 0),
        CONSTRAINT ck_intents_rate CHECK (rate >= 0),
        CONSTRAINT ck_intents_disk_gb CHECK (disk_gb >= 0),
        CONSTRAINT ck_intents_resolved CHECK ((state IN ('in_doubt', 'recorded', 'sent')) = (resolved_at IS NULL))
    ) STRICT
    ;
INSERT INTO "intents" VALUES('c8eab7aff7cff031','rent','confirmed','vast','train',0,1785110400000000,'rent 1x RTX 4090 on host 118966 at $0.2294/h bid over a floor of $0.2293/h: 402 DLPerf h/$, 0.251 $ per useful hour','vast-55030930','36566959','118966','55030930','interruptible',229400,234585,40.0,1785110400000000,NULL,1785110400000000,'done');
INSERT INTO "intents" VALUES('989dc56f2b1412be','pause','confirmed','vast','train',0,1785121443000000,'move to host 146600 at $0.1667/h interruptible; first make sure that the old lease cannot start by itself: $0.417 over 2 h against wait $0.823, on_demand $0.697','vast-55030930','','118966','55030930','interruptible',NULL,234585,40.0,1785121443000000,NULL,1785121443000000,'done');
INSERT INTO "intents" VALUES('b286d50c9a1a5425','rent','confirmed','vast','train',0,1785121444000000,'move to host 146600 at $0.1667/h interruptible: $0.417 over 2 h against resume $0.823, on_demand $0.697','vast-55030961','47337423','146600','55030961','interruptible',166700,176330,40.0,1785121444000000,NULL,1785121444000000,'done');
INSERT INTO "intents" VALUES('64a4e432f300dacf','release','confirmed','vast','train',0,1785121521000000,'the workload runs on another host','vast-55030930','','118966','55030930','interruptible',NULL,234585,40.0,1785121521000000,NULL,1785121521000000,'done');
INSERT INTO "intents" VALUES('eb57d48009674cd3','pause','confirmed','vast','train',0,1785121854000000,'move to host 11096 at $0.2230/h interruptible; first make sure that the old lease cannot start by itself: $0.628 over 2 h against wait $0.805, on_demand $0.803','vast-55030961','','146600','55030961','interruptible',NULL,176330,40.0,1785121854000000,NULL,1785121854000000,'done');
INSERT INTO "intents" VALUES('8b8266ed7f94bc77','rent','rejected','vast','train',0,1785121855000000,'move to host 11096 at $0.2230/h interruptible: $0.628 over 2 h against resume $0.805, on_demand $0.803','','11085851','11096','55030989','interruptible',223000,254852,40.0,1785121855000000,NULL,1785121855000000,'bid_too_low');
INSERT INTO "intents" VALUES('c23d038a3be31a7e','release','confirmed','vast','train',0,1785121857000000,'the market has not confirmed the release','vast-55030989','','11096','55030989','interruptible',NULL,254852,40.0,1785121857000000,NULL,1785121857000000,'done');
INSERT INTO "intents" VALUES('f637c4caf7840f4a','rent','confirmed','vast','train',0,1785121860000000,'move to host 68660 at $0.3307/h interruptible: $0.759 over 2 h against resume $0.806','vast-55031023','25430165','68660','55031023','interruptible',330700,340330,40.0,1785121860000000,NULL,1785121860000000,'done');
INSERT INTO "intents" VALUES('59fb4b8f803fc33c','release','confirmed','vast','train',0,1785121936000000,'the workload runs on another host','vast-55030961','','146600','55030961','interruptible',NULL,176330,40.0,1785121936000000,NULL,1785121936000000,'done');
INSERT INTO "intents" VALUES('b891656421b76381','pause','confirmed','vast','train',0,1785166219000000,'move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.876, on_demand $0.874','vast-55031023','','68660','55031023','interruptible',NULL,340330,40.0,1785166219000000,NULL,1785166219000000,'done');
INSERT INTO "intents" VALUES('ddd18994eda6b9eb','rent','confirmed','vast','train',0,1785166220000000,'move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.876, on_demand $0.874','vast-55031062','31795030','94577','55031062','interruptible',82700,90107,40.0,1785166220000000,NULL,1785166220000000,'done');
INSERT INTO "intents" VALUES('d34c0ea1d835180f','release','confirmed','vast','train',0,1785166808000000,'lost before it was ready; the old lease stays','vast-55031062','','94577','55031062','interruptible',NULL,90107,40.0,1785166808000000,NULL,1785166808000000,'done');
INSERT INTO "intents" VALUES('081faf7ab5289e3e','resume','confirmed','vast','train',0,1785166810000000,'start it again where it stands: $0.915 over 2 h against on_demand $0.897','vast-55031023','','68660','55031023','interruptible',NULL,340330,40.0,1785166810000000,NULL,1785166810000000,'queued');
INSERT INTO "intents" VALUES('717ba117ab82f049','pause','confirmed','vast','train',0,1785167048100000,'move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.915, on_demand $0.897','vast-55031023','','68660','55031023','interruptible',NULL,340330,40.0,1785167048100000,NULL,1785167048100000,'done');
INSERT INTO "intents" VALUES('9d9808c8a7045041','rent','rejected','vast','train',0,1785167050100000,'move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.915, on_demand $0.897','','31795030','94577','55031089','interruptible',82700,90107,40.0,1785167050100000,NULL,1785167050100000,'bid_too_low');
INSERT INTO "intents" VALUES('4d6aa20d3d3c4d59','release','confirmed','vast','train',0,1785167052100000,'the market has not confirmed the release','vast-55031089','','94577','55031089','interruptible',NULL,90107,40.0,1785167052100000,NULL,1785167052100000,'done');
INSERT INTO "intents" VALUES('3021f0a12ad1e849','resume','confirmed','vast','train',0,1785167055100000,'start it again where it stands: $0.915 over 2 h against on_demand $0.897','vast-55031023','','68660','55031023','interruptible',NULL,340330,40.0,1785167055100000,NULL,1785167055100000,'queued');
INSERT INTO "intents" VALUES('374a07e34da46771','pause','confirmed','vast','train',0,1785167183200000,'move to host 94577 at $0.0827/h interruptible; first make sure that the old lease cannot start by itself: $0.271 over 2 h against wait $0.915, on_demand $0.897','vast-55031023','','68660','55031023','interruptible',NULL,340330,40.0,1785167183200000,NULL,1785167183200000,'done');
INSERT INTO "intents" VALUES('2b908152850c0544','rent','confirmed','vast','train',0,1785167185200000,'move to host 94577 at $0.0827/h interruptible: $0.271 over 2 h against resume $0.915, on_demand $0.897','vast-55031126','31795030','94577','55031126','interruptible',82700,90107,40.0,1785167185200000,NULL,1785167185200000,'done');
INSERT INTO "intents" VALUES('1c5bd02ce892a1f4','release','confirmed','vast','train',0,1785167262200000,'the workload runs on another host','vast-55031023','','68660','55031023','interruptible',NULL,340330,40.0,1785167262200000,NULL,1785167262200000,'done');
INSERT INTO "intents" VALUES('a054b6df0eefc8d1','rebid','confirmed','vast','train',0,1785167760200000,'raise the bid from $0.0827/h to $0.2160/h to beat $0.2150/h: $0.617 over 2 h against wait $0.766, raise $0.630, on_demand $0.905','vast-55031126','','94577','55031126','interruptible',216000,223407,40.0,1785167760200000,NULL,1785167760200000,'done');
INSERT INTO "intents" VALUES('3c6fcd5fc1787f6b','rebid','confirmed','vast','train',0,1785167881200000,'raise the bid from $0.2160/h to $0.2268/h to beat $0.2150/h: $0.630 over 2 h against wait $0.840, on_demand $0.905','vast-55031126','','94577','55031126','interruptible',226800,234207,40.0,1785167881200000,NULL,1785167881200000,'done');
INSERT INTO "intents" VALUES('616944eed921e314','pause','confirmed','vast','train',0,1785170299200000,'move to host 68660 at $0.3307/h interruptible; first make sure that the old lease cannot start by itself: $0.748 over 2 h against wait $0.826','vast-55031126','','94577','55031126','interruptible',NULL,234207,40.0,1785170299200000,NULL,1785170299200000,'done');
INSERT INTO "intents" VALUES('6996fd31dba22d1b','rent','confirmed','vast','train',0,1785170300200000,'move to host 68660 at $0.3307/h interruptible: $0.748 over 2 h against resume $0.826','vast-55031128','25430165','68660','55031128','interruptible',330700,340330,40.0,1785170300200000,NULL,1785170300200000,'done');
INSERT INTO "intents" VALUES('4c808f09a93d7577','release','confirmed','vast','train',0,1785170917200000,'the workload runs on another host','vast-55031126','','94577','55031126','interruptible',NULL,234207,40.0,1785170917200000,NULL,1785170917200000,'done');
CREATE TABLE leases (
        lease_id TEXT NOT NULL,
        market TEXT NOT NULL,
        instance_id TEXT NOT NULL,
        workload TEXT NOT NULL,
        slot INTEGER NOT NULL,
        tenure TEXT NOT NULL,
        state TEXT NOT NULL,
        host_id TEXT NOT NULL,
        owner_id TEXT NOT NULL,
        offer_id TEXT NOT NULL,
        gpu TEXT NOT NULL,
        gpus INTEGER NOT NULL,
        dlperf REAL NOT NULL,
        gpu_rate INTEGER NOT NULL,
        disk_rate INTEGER NOT NULL,
        disk_gb REAL NOT NULL,
        opened_at INTEGER NOT NULL,
        state_since INTEGER NOT NULL,
        bills TEXT NOT NULL,
        accrued_until INTEGER NOT NULL,
        intent_id TEXT NOT NULL,
        ask INTEGER,
        host_floor INTEGER,
        ends_at INTEGER,
        has_run INTEGER NOT NULL,
        has_failed INTEGER NOT NULL,
        run_since INTEGER,
        is_held INTEGER NOT NULL,
        paused_by_us INTEGER NOT NULL,
        interrupted_by TEXT,
        rival_floor INTEGER,
        recent_bids TEXT NOT NULL,
        bid_since INTEGER,
        traffic_down_gb REAL NOT NULL,
        traffic_up_gb REAL NOT NULL,
        ended_at INTEGER,
        end_reason TEXT NOT NULL,
        spec_digest TEXT NOT NULL,
        ready_since INTEGER,
        was_ready INTEGER NOT NULL,
        runs INTEGER NOT NULL,
        idle_since INTEGER,
        ssh_address TEXT NOT NULL,
        ports TEXT NOT NULL,
        CONSTRAINT pk_leases PRIMARY KEY (lease_id),
        CONSTRAINT ck_leases_slot CHECK (slot >= 0),
        CONSTRAINT ck_leases_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
        CONSTRAINT ck_leases_state CHECK (state IN ('ended', 'exited', 'missing', 'offline', 'paused', 'releasing',
            'running', 'starting')),
        CONSTRAINT ck_leases_gpus CHECK (gpus >= 0),
        CONSTRAINT ck_leases_dlperf CHECK (dlperf >= 0),
        CONSTRAINT ck_leases_gpu_rate CHECK (gpu_rate >= 0),
        CONSTRAINT ck_leases_disk_rate CHECK (disk_rate >= 0),
        CONSTRAINT ck_leases_disk_gb CHECK (disk_gb >= 0),
        CONSTRAINT ck_leases_bills CHECK (bills IN ('disk', 'gpu_and_disk', 'nothing')),
        CONSTRAINT ck_leases_ask CHECK (ask >= 0),
        CONSTRAINT ck_leases_host_floor CHECK (host_floor >= 0),
        CONSTRAINT ck_leases_has_run CHECK (has_run IN (0, 1)),
        CONSTRAINT ck_leases_has_failed CHECK (has_failed IN (0, 1)),
        CONSTRAINT ck_leases_is_held CHECK (is_held IN (0, 1)),
        CONSTRAINT ck_leases_paused_by_us CHECK (paused_by_us IN (0, 1)),
        CONSTRAINT ck_leases_interrupted_by CHECK (interrupted_by IN ('container_exit', 'contract_end', 'displaced',
            'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
        CONSTRAINT ck_leases_rival_floor CHECK (rival_floor >= 0),
        CONSTRAINT ck_leases_traffic_down_gb CHECK (traffic_down_gb >= 0),
        CONSTRAINT ck_leases_traffic_up_gb CHECK (traffic_up_gb >= 0),
        CONSTRAINT ck_leases_was_ready CHECK (was_ready IN (0, 1)),
        CONSTRAINT ck_leases_runs CHECK (runs >= 0),
        CONSTRAINT ck_leases_ended CHECK ((state = 'ended') = (ended_at IS NOT NULL))
    ) STRICT
    ;
INSERT INTO "leases" VALUES('vast-55030930','vast','55030930','train',0,'interruptible','ended','118966','5909','36566959','RTX 4090',1,1.00732546241367629138e+02,229400,5185,40.0,1785110400000000,1785121521000000,'nothing',1785121521000000,'c8eab7aff7cff031',413333,229334,1790477516000000,1,0,NULL,0,1,'displaced',NULL,'[]',1785110400000000,3.49999999967713293358e+00,0.0,1785121524000000,'moved','67f271829b816b07',NULL,0,1,NULL,'ssh8.vast.ai:21860','22/tcp=198.51.100.247:21861');
INSERT INTO "leases" VALUES('vast-55030961','vast','55030961','train',0,'interruptible','ended','146600','609463','47337423','RTX 4090',1,1.00054043486427502785e+02,166700,9630,40.0,1785121444000000,1785121936000000,'nothing',1785121936000000,'b286d50c9a1a5425',306667,166667,1787941468000000,1,0,NULL,0,1,'displaced',NULL,'[]',1785121444000000,3.50000000502355534948e+00,0.0,1785121939000000,'moved','67f271829b816b07',NULL,0,1,NULL,'ssh3.vast.ai:21922','22/tcp=198.51.100.238:21923');
INSERT INTO "leases" VALUES('vast-55030989','vast','55030989','train',0,'interruptible','ended','11096','66231','11085851','RTX 4090',1,98.6157457885853,223000,31852,40.0,1785121855000000,1785121857000000,'nothing',1785121857000000,'8b8266ed7f94bc77',280000,223000,1791511044000000,0,0,NULL,0,0,NULL,NULL,'[]',1785121855000000,0.0,0.0,1785121860000000,'bid_too_low','67f271829b816b07',NULL,0,0,NULL,'198.51.100.51','');
INSERT INTO "leases" VALUES('vast-55031023','vast','55031023','train',0,'interruptible','ended','68660','564213','25430165','RTX 4090',1,1.00198433518858223581e+02,330700,9630,40.0,1785121860000000,1785167262200000,'nothing',1785167262200000,'f637c4caf7840f4a',373333,330667,NULL,1,0,NULL,0,1,'displaced',NULL,'[]',1785121860000000,3.50000000298331714887e+00,0.0,1785167265200000,'moved','67f271829b816b07',NULL,0,1,NULL,'ssh2.vast.ai:22046','22/tcp=198.51.100.70:22047');
INSERT INTO "leases" VALUES('vast-55031062','vast','55031062','train',0,'interruptible','ended','94577','344149','31795030','RTX 4090',1,1.01620024106644876835e+02,82700,7407,40.0,1785166220000000,1785166808000000,'nothing',1785166808000000,'ddd18994eda6b9eb',346667,82667,1789814108000000,0,0,NULL,0,0,'displaced',NULL,'[]',1785166220000000,1.7395953797714809319e+00,0.0,1785166810000000,'move_lost','67f271829b816b07',NULL,0,0,NULL,'198.51.100.203','');
INSERT INTO "leases" VALUES('vast-55031089','vast','55031089','train',0,'interruptible','ended','94577','344149','31795030','RTX 4090',1,1.01620024106644876835e+02,82700,7407,40.0,1785167050100000,1785167052100000,'nothing',1785167052100000,'9d9808c8a7045041',346667,82667,1789814108000000,0,0,NULL,0,0,NULL,NULL,'[]',1785167050100000,0.0,0.0,1785167055100000,'bid_too_low','67f271829b816b07',NULL,0,0,NULL,'198.51.100.203','');
INSERT INTO "leases" VALUES('vast-55031126','vast','55031126','train',0,'interruptible','ended','94577','344149','31795030','RTX 4090',1,1.01620024106644876835e+02,226800,7407,40.0,1785167185200000,1785170917200000,'nothing',1785170917200000,'2b908152850c0544',346667,82667,1789814108000000,1,0,NULL,0,1,'displaced',215000,'[216000, 82700]',1785167881200000,3.50000000079034601085e+00,0.0,1785170920200000,'moved','67f271829b816b07',NULL,0,2,NULL,'ssh6.vast.ai:22252','22/tcp=198.51.100.203:22253');
INSERT INTO "leases" VALUES('vast-55031128','vast','55031128','train',0,'interruptible','running','68660','564213','25430165','RTX 4090',1,1.00198433518858223581e+02,330700,9630,40.0,1785170300200000,1785170915808785,'gpu_and_disk',1785196719200000,'6996fd31dba22d1b',373333,330667,NULL,1,0,1785170915808785,0,0,NULL,NULL,'[]',1785170300200000,3.4999999993296113665e+00,0.0,NULL,'','67f271829b816b07',NULL,0,1,NULL,'ssh8.vast.ai:22256','22/tcp=198.51.100.70:22257');
CREATE TABLE looks (
        market TEXT NOT NULL,
        at INTEGER NOT NULL,
        slices TEXT NOT NULL,
        CONSTRAINT pk_looks PRIMARY KEY (market, at)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE losses (
        lease_id TEXT NOT NULL,
        at INTEGER NOT NULL,
        cause TEXT NOT NULL,
        lost INTEGER NOT NULL,
        CONSTRAINT pk_losses PRIMARY KEY (lease_id, at),
        CONSTRAINT ck_losses_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop',
            'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
        CONSTRAINT ck_losses_lost CHECK (lost >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE meta (
        "key" TEXT NOT NULL,
        value TEXT NOT NULL,
        CONSTRAINT pk_meta PRIMARY KEY ("key")
    ) STRICT
    ;
INSERT INTO "meta" VALUES('fleet_id','c0ffee000000');
INSERT INTO "meta" VALUES('account/vast','398245');
CREATE TABLE phases (
        lease_id TEXT NOT NULL,
        day TEXT NOT NULL,
        tenure TEXT NOT NULL,
        paid INTEGER NOT NULL,
        loading INTEGER NOT NULL,
        restoring INTEGER NOT NULL,
        useful INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        paused_disk INTEGER NOT NULL,
        CONSTRAINT pk_phases PRIMARY KEY (lease_id, day, tenure),
        CONSTRAINT ck_phases_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
        CONSTRAINT ck_phases_paid CHECK (paid >= 0),
        CONSTRAINT ck_phases_loading CHECK (loading >= 0),
        CONSTRAINT ck_phases_restoring CHECK (restoring >= 0),
        CONSTRAINT ck_phases_useful CHECK (useful >= 0),
        CONSTRAINT ck_phases_lost CHECK (lost >= 0),
        CONSTRAINT ck_phases_paused_disk CHECK (paused_disk >= 0),
        CONSTRAINT ck_phases_parts CHECK (paid = loading + restoring + useful + lost)
    ) WITHOUT ROWID, STRICT
    ;
INSERT INTO "phases" VALUES('vast-55030930','2026-07-27','interruptible',10792011265,0,0,9900000000,892011265,0);
INSERT INTO "phases" VALUES('vast-55030961','2026-07-27','interruptible',339014128,0,0,0,339014128,0);
INSERT INTO "phases" VALUES('vast-55031023','2026-07-27','interruptible',44277856397,0,0,44100000000,177856397,0);
INSERT INTO "phases" VALUES('vast-55031126','2026-07-27','interruptible',2411658802,0,0,1800000000,611658802,0);
INSERT INTO "phases" VALUES('vast-55031128','2026-07-27','interruptible',25803391215,0,0,25803391215,0,0);
CREATE TABLE price_rollups (
        market TEXT NOT NULL,
        gpu TEXT NOT NULL,
        gpus INTEGER NOT NULL,
        hour INTEGER NOT NULL,
        asks INTEGER NOT NULL,
        ask_sum INTEGER NOT NULL,
        ask_min INTEGER,
        ask_max INTEGER,
        floors INTEGER NOT NULL,
        floor_sum INTEGER NOT NULL,
        floor_min INTEGER,
        floor_max INTEGER,
        CONSTRAINT pk_price_rollups PRIMARY KEY (market, gpu, gpus, hour),
        CONSTRAINT ck_price_rollups_asks CHECK (asks >= 0),
        CONSTRAINT ck_price_rollups_ask_sum CHECK (ask_sum >= 0),
        CONSTRAINT ck_price_rollups_ask_min CHECK (ask_min >= 0),
        CONSTRAINT ck_price_rollups_ask_max CHECK (ask_max >= 0),
        CONSTRAINT ck_price_rollups_floors CHECK (floors >= 0),
        CONSTRAINT ck_price_rollups_floor_sum CHECK (floor_sum >= 0),
        CONSTRAINT ck_price_rollups_floor_min CHECK (floor_min >= 0),
        CONSTRAINT ck_price_rollups_floor_max CHECK (floor_max >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE prices (
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        gpus INTEGER NOT NULL,
        at INTEGER NOT NULL,
        gpu TEXT NOT NULL,
        ask INTEGER,
        floor INTEGER,
        CONSTRAINT pk_prices PRIMARY KEY (market, host_id, gpus, at),
        CONSTRAINT ck_prices_ask CHECK (ask >= 0),
        CONSTRAINT ck_prices_floor CHECK (floor >= 0)
    ) WITHOUT ROWID, STRICT
    ;
INSERT INTO "prices" VALUES('vast','11096',1,1785121202000000,'RTX 4090',280000,223000);
INSERT INTO "prices" VALUES('vast','11096',1,1785125463000000,'RTX 4090',280000,110667);
INSERT INTO "prices" VALUES('vast','11096',1,1785139863000000,'RTX 4090',280000,335000);
INSERT INTO "prices" VALUES('vast','11096',1,1785143463000000,'RTX 4090',280000,110667);
INSERT INTO "prices" VALUES('vast','11096',1,1785154263000000,'RTX 4090',280000,246000);
INSERT INTO "prices" VALUES('vast','118966',1,1785110400000000,'RTX 4090',413333,229334);
INSERT INTO "prices" VALUES('vast','118966',1,1785114002000000,'RTX 4090',413333,229000);
INSERT INTO "prices" VALUES('vast','118966',1,1785139863000000,'RTX 4090',413333,229334);
INSERT INTO "prices" VALUES('vast','118966',1,1785157863000000,'RTX 4090',417333,232000);
INSERT INTO "prices" VALUES('vast','118966',1,1785165063000000,'RTX 4090',417333,427000);
INSERT INTO "prices" VALUES('vast','118966',1,1785166808000000,'RTX 4090',429333,427000);
INSERT INTO "prices" VALUES('vast','118966',1,1785170299200000,'RTX 4090',457333,427000);
INSERT INTO "prices" VALUES('vast','118966',1,1785181104200000,'RTX 4090',470667,261334);
INSERT INTO "prices" VALUES('vast','130983',1,1785110400000000,'RTX 4090',546667,430667);
INSERT INTO "prices" VALUES('vast','130983',1,1785167048100000,'RTX 4090',NULL,430667);
INSERT INTO "prices" VALUES('vast','130983',1,1785167052100000,'RTX 4090',546667,430667);
INSERT INTO "prices" VALUES('vast','146600',1,1785117602000000,'RTX 4090',306667,166667);
INSERT INTO "prices" VALUES('vast','68660',1,1785110400000000,'RTX 4090',373333,330667);
INSERT INTO "prices" VALUES('vast','68660',1,1785125463000000,'RTX 4090',373333,331000);
INSERT INTO "prices" VALUES('vast','68660',1,1785170299200000,'RTX 4090',373333,330667);
INSERT INTO "prices" VALUES('vast','68660',1,1785173904200000,'RTX 4090',373333,331000);
INSERT INTO "prices" VALUES('vast','94577',1,1785143463000000,'RTX 4090',346667,82667);
INSERT INTO "prices" VALUES('vast','94577',1,1785154263000000,'RTX 4090',346667,112000);
INSERT INTO "prices" VALUES('vast','94577',1,1785165063000000,'RTX 4090',346667,82667);
INSERT INTO "prices" VALUES('vast','94577',1,1785167108100000,'RTX 4090',346667,83000);
INSERT INTO "prices" VALUES('vast','94577',1,1785167168200000,'RTX 4090',346667,82667);
INSERT INTO "prices" VALUES('vast','94577',1,1785168228200000,'RTX 4090',346667,83000);
INSERT INTO "prices" VALUES('vast','94577',1,1785177504200000,'RTX 4090',346667,82667);
INSERT INTO "prices" VALUES('vast','94577',1,1785184704200000,'RTX 4090',346667,393000);
CREATE TABLE progress (
        workload TEXT NOT NULL,
        hours REAL NOT NULL,
        told_at INTEGER NOT NULL,
        since INTEGER NOT NULL,
        source TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        CONSTRAINT pk_progress PRIMARY KEY (workload),
        CONSTRAINT ck_progress_hours CHECK (hours >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE shadow_decisions (
        decision_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        workload TEXT NOT NULL,
        strategy TEXT NOT NULL,
        kind TEXT NOT NULL,
        code TEXT NOT NULL,
        sentence TEXT NOT NULL,
        host_id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        CONSTRAINT ck_shadow_decisions_slot CHECK (slot >= 0)
    ) STRICT
    ;
CREATE TABLE shadows (
        workload TEXT NOT NULL,
        strategy TEXT NOT NULL,
        since INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        spent INTEGER NOT NULL,
        live_spent INTEGER NOT NULL,
        paid INTEGER NOT NULL,
        useful INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        live_paid INTEGER NOT NULL,
        live_useful INTEGER NOT NULL,
        live_lost INTEGER NOT NULL,
        interruptions INTEGER NOT NULL,
        starts INTEGER NOT NULL,
        rents INTEGER NOT NULL,
        position BLOB NOT NULL,
        CONSTRAINT pk_shadows PRIMARY KEY (workload, strategy),
        CONSTRAINT ck_shadows_spent CHECK (spent >= 0),
        CONSTRAINT ck_shadows_live_spent CHECK (live_spent >= 0),
        CONSTRAINT ck_shadows_paid CHECK (paid >= 0),
        CONSTRAINT ck_shadows_useful CHECK (useful >= 0),
        CONSTRAINT ck_shadows_lost CHECK (lost >= 0),
        CONSTRAINT ck_shadows_live_paid CHECK (live_paid >= 0),
        CONSTRAINT ck_shadows_live_useful CHECK (live_useful >= 0),
        CONSTRAINT ck_shadows_live_lost CHECK (live_lost >= 0),
        CONSTRAINT ck_shadows_interruptions CHECK (interruptions >= 0),
        CONSTRAINT ck_shadows_starts CHECK (starts >= 0),
        CONSTRAINT ck_shadows_rents CHECK (rents >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE slices (
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        gpus INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        facts TEXT NOT NULL,
        CONSTRAINT pk_slices PRIMARY KEY (market, host_id, gpus)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE speeds (
        workload TEXT NOT NULL,
        gpu TEXT NOT NULL,
        hours REAL NOT NULL,
        running_hours REAL NOT NULL,
        CONSTRAINT pk_speeds PRIMARY KEY (workload, gpu),
        CONSTRAINT ck_speeds_hours CHECK (hours >= 0),
        CONSTRAINT ck_speeds_running_hours CHECK (running_hours >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE spend (
        lease_id TEXT NOT NULL,
        day TEXT NOT NULL,
        tenure TEXT NOT NULL,
        workload TEXT NOT NULL,
        market TEXT NOT NULL,
        gpu INTEGER NOT NULL,
        disk INTEGER NOT NULL,
        traffic INTEGER NOT NULL,
        running_seconds REAL NOT NULL,
        useful_seconds REAL NOT NULL,
        CONSTRAINT pk_spend PRIMARY KEY (lease_id, day, tenure),
        CONSTRAINT ck_spend_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
        CONSTRAINT ck_spend_gpu CHECK (gpu >= 0),
        CONSTRAINT ck_spend_disk CHECK (disk >= 0),
        CONSTRAINT ck_spend_traffic CHECK (traffic >= 0),
        CONSTRAINT ck_spend_running_seconds CHECK (running_seconds >= 0),
        CONSTRAINT ck_spend_useful_seconds CHECK (useful_seconds >= 0)
    ) WITHOUT ROWID, STRICT
    ;
INSERT INTO "spend" VALUES('vast-55030930','2026-07-27','interruptible','train','vast',687703,16012,8659,10792.011265,9900.0);
INSERT INTO "spend" VALUES('vast-55030961','2026-07-27','interruptible','train','vast',15698,1317,3189,339.014128,0.0);
INSERT INTO "spend" VALUES('vast-55030989','2026-07-27','interruptible','train','vast',0,18,0,0.0,0.0);
INSERT INTO "spend" VALUES('vast-55031023','2026-07-27','interruptible','train','vast',4067364,121524,12519,4.42778563969999959222e+04,44100.0);
INSERT INTO "spend" VALUES('vast-55031062','2026-07-27','interruptible','train','vast',0,1209,7474,0.0,0.0);
INSERT INTO "spend" VALUES('vast-55031089','2026-07-27','interruptible','train','vast',0,4,0,0.0,0.0);
INSERT INTO "spend" VALUES('vast-55031126','2026-07-27','interruptible','train','vast',131943,7675,15040,2.41165880200000037805e+03,1800.0);
INSERT INTO "spend" VALUES('vast-55031128','2026-07-27','interruptible','train','vast',2370300,70714,12518,25803.391215,0.0);
CREATE UNIQUE INDEX uq_leases_open_instance ON leases (market, instance_id) WHERE state <> 'ended'
    ;
CREATE INDEX ix_leases_instance_id ON leases (instance_id)
    ;
CREATE INDEX ix_leases_open ON leases (state) WHERE state <> 'ended'
    ;
CREATE INDEX ix_leases_opened_at ON leases (opened_at)
    ;
CREATE INDEX ix_intents_open ON intents (state) WHERE state IN ('in_doubt', 'recorded', 'sent')
    ;
CREATE INDEX ix_intents_recorded_at ON intents (recorded_at)
    ;
CREATE UNIQUE INDEX uq_intents_open_paying ON intents (workload, slot) WHERE kind IN ('rebid', 'rent', 'resume')
        AND state IN ('in_doubt', 'recorded', 'sent')
    ;
CREATE INDEX ix_events_at ON events (at)
    ;
CREATE INDEX ix_events_workload_at ON events (workload, at)
    ;
CREATE INDEX ix_spend_day ON spend (day)
    ;
CREATE INDEX ix_cooldowns_until ON cooldowns (until)
    ;
CREATE INDEX ix_decisions_slot ON decisions (workload, slot, decision_id)
    ;
CREATE INDEX ix_events_lease_id_at ON events (lease_id, at);
CREATE INDEX ix_intents_lease_id ON intents (lease_id);
CREATE INDEX ix_shadow_decisions_shadow ON shadow_decisions (workload, strategy, decision_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decisions',41);
INSERT INTO "sqlite_sequence" VALUES('events',47);
COMMIT;
INSERT INTO alembic_version VALUES('0009');
