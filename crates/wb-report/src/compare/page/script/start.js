// Puts the whole table in the place of the failures. Where anything is missing for that, these stay.

try {
  const data = prepared(await inflated(document.getElementById("data").textContent));
  const live = document.getElementById("live");
  const form = filterForm(data);
  live.append(form);
  const everything = () => {
    form.reset();
    form.elements.status.value = "";
    form.elements.primary.checked = false;
    apply();
  };
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
