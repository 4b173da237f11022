// What any page does beyond being read: open what a link points into, copy what is to be typed or kept, and show
// everything on paper.

function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
  }
}
addEventListener("hashchange", reveal);
reveal();

function copies(around, text) {
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
  around.append(button);
}

for (const around of document.querySelectorAll(".command")) copies(around, around.querySelector("code"));

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.cell:not([open])")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
