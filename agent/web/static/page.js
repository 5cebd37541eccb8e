// Draws the fleet again after each change that the feed pushes, and reports when the daemon is silent. Without script the
// page is complete but does not change.
"use strict";
{
  const SILENCE_MS = 20000;
  const REDRAW_MS = 5000;
  const stale = document.getElementById("stale");
  const title = document.title;
  let stream = null;
  let heardAt = Date.now();
  let drawnAt = Date.now();
  let isDue = false;
  let refusal = "";

  const asOf = () => document.querySelector("#main h1 time")?.getAttribute("datetime").slice(0, 19).replace("T", " ");
  const heard = () => { heardAt = Date.now(); };
  const listen = () => {
    stream = new EventSource("/api/v1/events");
    stream.addEventListener("fleet", () => { heard(); isDue = true; });
    stream.addEventListener("beat", heard);
    // The daemon ended this stream for another reader. A reconnection would end another reader's stream.
    stream.addEventListener("refused", (told) => {
      stream.close();
      refusal = JSON.parse(told.data).sentence;
    });
  };
  // A click anywhere into a table gives its region the focus, which is no use of a control.
  const isInUse = () => document.activeElement?.matches("#main :is(a, button, input, select, textarea)");
  const regions = () => [...document.querySelectorAll("#main .wide")];
  const replace = (fresh) => {
    const before = regions().find((each) => each === document.activeElement);
    const left = before?.scrollLeft;
    document.getElementById("main").replaceChildren(...fresh.childNodes);
    drawCharts();
    const after = before && regions().find((each) => each.ariaLabel === before.ariaLabel);
    if (after) { after.focus({ preventScroll: true }); after.scrollLeft = left; }
  };
  const redraw = async () => {
    isDue = false;
    drawnAt = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(8000) });
      if (!answer.ok) { isDue = true; return; }
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
      if (!fresh || isInUse()) { isDue = true; return; }
      replace(fresh);
    } catch {
      // The daemon restarts now and then. The page reports the silence and requests the figures again.
      isDue = true;
    }
  };
  const look = () => {
    if (document.hidden) return;
    const silent = Date.now() - heardAt;
    const isStale = refusal !== "" || silent > SILENCE_MS;
    if (isStale) {
      const why = refusal || `the daemon has not answered for ${Math.round(silent / 1000)} s`;
      stale.textContent = `Stale: ${why}. These figures are of ${asOf()} UTC.`;
    }
    stale.hidden = !isStale;
    document.title = isStale ? `STALE - ${title}` : title;
    // A browser gives up a stream for good after some errors.
    if (stream.readyState === EventSource.CLOSED && !refusal) listen();
    if (isDue && Date.now() - drawnAt > REDRAW_MS && !getSelection().toString()) redraw();
  };
  // A hidden tab holds no stream: browsers allow six connections to an address, the daemon sixteen streams.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stream.close(); return; }
    isDue = true;
    refusal = "";
    // The stream has a few seconds to begin again before its silence is reported.
    heardAt = Math.max(heardAt, Date.now() - SILENCE_MS + 3000);
    listen();
  });
  listen();
  setInterval(look, 1000);
}
