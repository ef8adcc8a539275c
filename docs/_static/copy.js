// A button on each block of code that copies it: commands without "$", Python without prompts and outputs.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("article div.highlight")) {
    if (!block.closest(".sphx-glr-script-out")) addButton(block);
  }
});

function addButton(block) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy this code");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(codeOf(block.querySelector("pre").textContent));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}

function codeOf(text) {
  const lines = text.trimEnd().split("\n");
  const prompts = /^(\$ |>>> |\.\.\. ?)/;
  const typed = lines.some((line) => prompts.test(line)) ? lines.filter((line) => prompts.test(line)) : lines;
  return typed.map((line) => line.replace(prompts, "")).join("\n") + "\n";
}
