// The desk keeps itself up to date, copies text, and draws the throughput chart. No inline script, nothing from elsewhere.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);

  // -- copying

  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.setAttribute("readonly", "");
      area.className = "d-copy-area";
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const icon = button.querySelector(".material-symbols-outlined");
    if (icon) {
      icon.textContent = "check";
      setTimeout(() => { icon.textContent = "content_copy"; }, 1500);
    }
    button.dataset.copied = "yes";
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    if (button.dataset.copy !== undefined) {
      copy(button.dataset.copy, button);
      return;
    }
    const head = button.closest(".d-card__head, .d-sub");
    const source = head && head.nextElementSibling;
    if (source) copy(source.textContent, button);
  });

  // -- the chart

  let chart = null;

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function paint() {
    const dark = document.documentElement.classList.contains("dark");
    chart.options.scales.y.grid.color = dark ? "rgba(255,255,255,.08)" : "rgba(0,0,0,.07)";
    for (const axis of ["x", "y"]) chart.options.scales[axis].ticks.color = dark ? "#9ca3af" : "#6b7280";
    chart.options.plugins.legend.labels.color = dark ? "#d1d5db" : "#4b5563";
    chart.update("none");
  }

  function draw(series) {
    const canvas = byId("throughput");
    if (!canvas || typeof Chart === "undefined") return;
    if (chart) {
      chart.data.labels = series.labels;
      chart.data.datasets[0].data = series.completed;
      chart.data.datasets[1].data = series.failed;
      chart.update("none");
      return;
    }
    const bars = { stack: "all", borderRadius: 3, maxBarThickness: 14 };
    chart = new Chart(canvas.getContext("2d"), {
      type: "bar",
      data: {
        labels: series.labels,
        datasets: [
          { label: "Completed", data: series.completed, backgroundColor: color("--color-primary-500"), ...bars },
          { label: "Failed", data: series.failed, backgroundColor: "#ef4444", ...bars },
        ],
      },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        plugins: { legend: { display: true, align: "end", labels: { boxWidth: 10, boxHeight: 10, font: { family: "Inter" } } } },
        scales: {
          x: { stacked: true, grid: { display: false }, border: { display: false }, ticks: { maxTicksLimit: 13, maxRotation: 0 } },
          y: { stacked: true, beginAtZero: true, suggestedMax: 4, grid: {}, border: { display: false }, ticks: { precision: 0, maxTicksLimit: 5 } },
        },
      },
    });
    paint();
    new MutationObserver(paint).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  }

  // -- live regions

  function followTail(root) {
    for (const box of root.querySelectorAll("[data-tail]")) box.scrollTop = box.scrollHeight;
  }

  function show(name, html) {
    const region = document.querySelector(`[data-region="${CSS.escape(name)}"]`);
    // Never take away what the keyboard is on.
    if (!region || region.dataset.shown === html || region.contains(document.activeElement)) return;
    const box = region.querySelector("[data-tail]");
    const atEnd = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    const before = box ? box.scrollTop : 0;
    region.innerHTML = html;
    region.dataset.shown = html;
    const fresh = region.querySelector("[data-tail]");
    if (fresh) fresh.scrollTop = atEnd ? fresh.scrollHeight : before;
  }

  function sign(state, text) {
    for (const mark of document.querySelectorAll("[data-live-sign]")) {
      mark.classList.toggle("is-off", state === "off");
      mark.classList.toggle("is-done", state === "done");
      const words = mark.querySelector("span");
      if (words && words.textContent !== text) words.textContent = text;
    }
  }

  function follow(desk) {
    const every = Number(desk.dataset.liveEvery) || 3000;
    let wait = every;
    let timer = 0;

    async function look() {
      try {
        const answer = await fetch(desk.dataset.liveUrl, {
          headers: { Accept: "application/json" },
          credentials: "same-origin",
          redirect: "error",
        });
        if (!answer.ok) throw new Error(String(answer.status));
        const news = await answer.json();
        for (const [name, html] of Object.entries(news.regions)) show(name, html);
        if (news.series) draw(news.series);
        wait = every;
        if (!news.live) {
          sign("done", "finished");
          return;
        }
        sign("on", "live");
      } catch {
        // Signed out, or the server is away: keep trying, more slowly.
        wait = Math.min(wait * 2, 30000);
        sign("off", "no connection");
      }
      plan();
    }

    function plan() {
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(look, wait);
    }

    document.addEventListener("visibilitychange", () => {
      if (document.hidden) clearTimeout(timer);
      else look();
    });
    plan();
  }

  // -- keyboard: what the admin's looks make clickable without a button can be reached and pressed as well

  const PRESSABLE = "[x-on\\:click]:not(a[href]):not(button):not(input):not(select):not(label):not(#changelist-filter-close)";

  function makeReachable(root) {
    // The names of icons are no text for a screen reader.
    for (const icon of root.querySelectorAll(".material-symbols-outlined")) {
      if (!icon.matches(PRESSABLE)) icon.setAttribute("aria-hidden", "true");
    }
    for (const element of root.querySelectorAll(PRESSABLE)) {
      if (element.hasAttribute("tabindex")) continue;
      element.tabIndex = 0;
      element.setAttribute("role", "button");
      const icon = element.textContent.trim();
      if (NAMES[icon] && !element.hasAttribute("aria-label")) element.setAttribute("aria-label", NAMES[icon]);
    }
  }

  const NAMES = { dock_to_right: "Show or hide the menu", close: "Close", more_horiz: "More", more_vert: "More" };

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    if (event.target instanceof Element && event.target.matches('[role="button"]' + PRESSABLE)) {
      event.preventDefault();
      event.target.click();
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    makeReachable(document);
    const tab = document.querySelector(".d-tabs .is-active");
    if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 40;
    const series = byId("throughput-series");
    if (series) draw(JSON.parse(series.textContent));
    followTail(document);
    const desk = byId("desk");
    if (desk && desk.dataset.liveUrl) follow(desk);
  });
})();
