// Puts the whole table in the place of the failures. Where anything is missing for that, these stay.

try {
  const data = prepared(await inflated(document.getElementById("data").textContent));
  const live = document.getElementById("live");
  const form = filterForm(data);
  live.append(form);
  const everything = () => {
    form.reset();
    form.elements.status.value = "";
    form.elements.primary.value = "";
    apply();
  };
  // The failures that are not primary have a section of their own; the table has all of them, and why.
  const others = document.getElementById("others-in-table");
  if (others) {
    const button = made("button", { type: "button" }, "show them in the table above, with reasons");
    button.addEventListener("click", () => {
      form.reset();
      form.elements.status.value = "failed";
      form.elements.primary.value = "0";
      apply();
      document.getElementById("checks").scrollIntoView();
    });
    others.replaceChildren(button);
  }
  const { show, body } = table(data, live, everything);
  explained(data, body);
  function apply() {
    const checks = filtered(data, form);
    form.querySelector("output").textContent = `${checks.length} of ${data.count} checks`;
    show(checks);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  apply();
  live.hidden = false;
  document.getElementById("still").remove();
} catch (error) {
  document.getElementById("live").remove();
  document.getElementById("still").append(made("p", { class: "note" }, `This browser cannot show all checks: ${error.message}`));
}
