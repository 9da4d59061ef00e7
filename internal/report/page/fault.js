// What goes wrong in this page is shown in it.
"use strict";

function showFault(text) {
  const line = document.getElementById("fault");
  line.hidden = false;
  line.textContent += `This page could not be drawn whole: ${text} `;
}

window.addEventListener("error", (event) => showFault(event.message));
window.addEventListener("unhandledrejection", (event) => showFault(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => showFault(`${event.violatedDirective} ${event.blockedURI}`));
