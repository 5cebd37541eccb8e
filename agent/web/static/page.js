// Draws the fleet anew every fifteen seconds; without script the page is whole and stands still.
"use strict";
if (location.pathname === "/") {
  setInterval(async () => {
    if (document.hidden || getSelection().toString()) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
      const focused = document.activeElement && document.getElementById("main").contains(document.activeElement);
      if (fresh && !focused) document.getElementById("main").replaceChildren(...fresh.childNodes);
    } catch { /* The daemon restarts now and then; the next try tells. */ }
  }, 15000);
}
