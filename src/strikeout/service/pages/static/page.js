
// Pages: cells chosen on the map become a what-if; switches and questions replace the page without loading it anew.
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);

  document.addEventListener("so-choose", (event) => {
    const bar = $(".picked", event.target.closest("section") || document);
    if (!bar) return;
    const { where, words } = event.detail;
    bar.classList.toggle("on", where !== "");
    $("code", bar).textContent = words;
    const link = $(".go", bar);
    link.href = `${link.pathname}?${new URLSearchParams({ where })}`;
  });

  // A page of this site is fetched and its content put in place; the address and the back button work as usual.
  async function show(address, push) {
    document.body.classList.add("busy");
    try {
      const answer = await fetch(address, { headers: { accept: "text/html" }, credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [now, next] = [$("main"), $("main", page)];
      if (!next) return void (location.href = address);
      now.replaceWith(document.adoptNode(next));
      $("header.bar").replaceWith(document.adoptNode($("header.bar", page)));
      document.title = page.title;
      if (push) history.pushState({ strikeout: true }, "", answer.url);
      begin();
    } catch {
      location.href = address;
    } finally {
      document.body.classList.remove("busy");
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest(".switches a, .picked .go");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || !link.href) return;
    event.preventDefault();
    show(link.href, true);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method === "get") {
      event.preventDefault();
      show(`${form.action}?${new URLSearchParams(new FormData(form))}`, true);
    } else if (form.dataset.sent) {
      event.preventDefault(); // a second click
    } else {
      form.dataset.sent = "yes";
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches(".switches select")) event.target.form.requestSubmit();
  });
  addEventListener("popstate", () => show(location.href, false));
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));

  function watch(job) {
    const source = new EventSource(job.dataset.events);
    const line = $(".progress", job);
    source.addEventListener("progress", (event) => {
      const { state, progress } = JSON.parse(event.data);
      const facts = Object.entries(progress).map(([name, value]) => `${name} ${value}`).join(", ");
      line.textContent = facts ? `${state}: ${facts}` : state;
    });
    source.addEventListener("over", () => { source.close(); location.reload(); });
  }

  function dropping(place) {
    const input = $("input[type=file]", place);
    for (const name of ["dragover", "dragleave", "drop"]) {
      place.addEventListener(name, (event) => {
        event.preventDefault();
        place.classList.toggle("over", name === "dragover");
        if (name === "drop" && event.dataTransfer.files.length) input.files = event.dataTransfer.files;
      });
    }
  }

  // On a narrow screen the page that is open and the day that is chosen would be out of sight.
  function bringIntoSight() {
    for (const [box, one] of [["header.bar nav", "[aria-current]"], ["#influence .scroll", ".so-chosen"]]) {
      const [outer, inner] = [$(box), $(`${box} ${one}`)].map((part) => part?.getBoundingClientRect());
      if (inner) $(box).scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
    }
  }

  function begin() {
    bringIntoSight();
    window.strikeoutDrawings.begin(document);
    document.querySelectorAll("#job").forEach(watch);
    document.querySelectorAll(".drop").forEach(dropping);
  }
  begin();
})();
