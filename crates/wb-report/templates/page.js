// Common functions of all pages: open the target of a link, copy commands and data, and open all details for printing.

function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  if (target.tagName === "DETAILS") target.querySelector("summary").focus({ preventScroll: true });
}
addEventListener("hashchange", reveal);
reveal();

// Adds a button to `container` that copies the text of an element.
function addCopyButton(container, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
  container.append(button);
}

for (const command of document.querySelectorAll(".command")) addCopyButton(command, command.querySelector("code"));

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:is(.cell, .part):not([open])")];
  for (const details of opened) details.open = true;
  });
addEventListener("afterprint", () => { for (const details of opened) details.open = false; });
