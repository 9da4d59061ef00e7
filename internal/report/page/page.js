// The page from top to bottom.
"use strict";

for (const part of [
  showVerdict, showNumbers, showBlame, showStages, showBothSides, showLatencyAgainstLoad, showFrontier, showObjectives, showGoodput, showTime, showShapes, showPrompts, showRequests, showClient, showGates, showFacts,
]) part(document.getElementById("page"));
document.documentElement.dataset.drawn = "true";
