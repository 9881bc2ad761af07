// A clock that does not advance while the program runs: reads of it are counted, so that a program that waits for it to
// move can be told.
(function (kit) {
  "use strict";

  const { clock, defineProperty, host } = kit;
  const { clockReadsMax, lookAtClock } = host;

  let now = clock.now, left = clockReadsMax;
  const advance = (at) => {
    now = at;
    left = clockReadsMax;
  };
  const read = () => {
    left -= 1;
    if (left <= 0) left = lookAtClock();
    return now;
  };
  // What `Date` and `performance` read.
  defineProperty(clock, "now", { __proto__: null, get: read, set: advance, enumerable: true, configurable: true });
  // What the other parts read: an event has a time also where nobody asks for it.
  kit.clock = {
    __proto__: null,
    get now() { return now; },
    set now(at) { advance(at); },
    get startedAt() { return clock.startedAt; },
  };
})
