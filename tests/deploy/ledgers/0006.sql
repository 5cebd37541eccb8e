-- A ledger of schema 0006: the one before, led there by the migrations; what it has more.
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
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0006');
