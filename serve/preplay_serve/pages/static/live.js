"use strict";
{
  const SLOWEST = 5000;
  const live = document.getElementById("live");
  const cancel = document.getElementById("cancel");

  async function refresh() {
    const answer = await fetch(location.pathname);
    if (!answer.ok || answer.redirected) return location.reload();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
    if (!fresh || fresh.dataset.final) return location.reload();
    for (const part of fresh.querySelectorAll("[data-part]")) {
      const shown = live.querySelector(`[data-part="${part.dataset.part}"]`);
      if (shown && shown.outerHTML !== part.outerHTML) shown.replaceWith(part);
    }
  }

  if (live && !live.dataset.final) {
    let waiting = false;
    const soon = () => {
      if (waiting) return;
      waiting = true;
      setTimeout(() => refresh().catch(() => {}).finally(() => { waiting = false; }), 1000);
    };
    const events = new EventSource(live.dataset.events);
    events.addEventListener("progress", soon);
    events.addEventListener("end", () => { events.close(); location.reload(); });
    setInterval(() => { if (events.readyState === EventSource.CLOSED) soon(); }, SLOWEST);
  }

  if (cancel) {
    cancel.addEventListener("submit", (event) => {
      if (!confirm("Cancel this evaluation? What it has imagined so far is lost.")) event.preventDefault();
    });
  }
}
