// Replaces the list of failures by the whole table. If the browser lacks a feature for that, the list stays.

try {
  const data = prepare(await inflate(document.getElementById("data").textContent));
  const live = document.getElementById("live");
  const form = filterForm(data);
  live.append(form);
  const showAll = () => {
    form.reset();
    form.elements.status.value = "";
    form.elements.primary.value = "";
    apply();
  };
  // Failures that are not primary have a section of their own; the table has all of them with explanations.
  const others = document.getElementById("others-in-table");
  if (others) {
    const button = createNode("button", { type: "button" }, "show them in the table above, with reasons");
    button.addEventListener("click", () => {
      form.reset();
      form.elements.status.value = "failed";
      form.elements.primary.value = "0";
      apply();
      document.getElementById("checks").scrollIntoView();
    });
    others.replaceChildren(button);
  }
  const { show, body } = table(data, live, showAll);
  enableExplanations(data, body);
  function apply() {
    const checks = filterChecks(data, form);
    form.querySelector("output").textContent = `${checks.length} of ${data.count} checks`;
    show(checks);
  }
  // A list of what is not equal says nothing if everything is.
  if (filterChecks(data, form).length === 0) form.elements.status.value = "";
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  apply();
  live.hidden = false;
  document.getElementById("still").remove();
} catch (error) {
  document.getElementById("live").remove();
  document.getElementById("still").append(createNode("p", { class: "note" }, `This browser cannot show all checks: ${error.message}`));
}
