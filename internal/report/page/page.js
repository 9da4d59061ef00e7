// The page from top to bottom.
"use strict";

for (const part of [
  showVerdict, showNumbers, showBlame, showStages, showLatencyAgainstLoad, showFrontier, showTime, showGates, showFacts,
]) part(document.getElementById("page"));
document.documentElement.dataset.drawn = "true";
