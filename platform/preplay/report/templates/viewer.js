"use strict";
{
  const find = (id) => document.getElementById(id);
  const pairs = [...document.querySelectorAll(".pair")];
  const [policy, session] = [find("pick-policy"), find("pick-session")];

  const of = (index) => pairs.filter((pair) => pair.dataset.policy === index);

  function show(shown) {
    for (const pair of pairs) {
      pair.hidden = pair !== shown;
      pair.open = pair === shown;
    }
    const mine = of(shown.dataset.policy);
    policy.value = shown.dataset.policy;
    session.replaceChildren(...mine.map((_, i) => new Option(`${i + 1} of ${mine.length}`, i)));
    session.value = mine.indexOf(shown);
    document.querySelector(".picker output").value = `${pairs.indexOf(shown) + 1} of ${pairs.length} in all`;
  }

  function move(by) {
    const now = pairs.findIndex((pair) => !pair.hidden);
    show(pairs[(now + by + pairs.length) % pairs.length]);
  }

  if (pairs.length) {
    document.querySelector(".picker").hidden = false;
    policy.addEventListener("change", () => show(of(policy.value)[0]));
    session.addEventListener("change", () => show(of(policy.value)[session.value]));
    find("previous").addEventListener("click", () => move(-1));
    find("next").addEventListener("click", () => move(1));
    show(pairs[0]);
  }

  const save = find("save");
  if (save) {
    save.hidden = false;
    save.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([find("result").textContent], { type: "application/json" }));
      link.download = "result.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
}
