// Randomness that follows from the seed of the execution: sfc32, one stream for Math.random, one for crypto.
(function (kit) {
  "use strict";

  const stream = () => {
    let a = 0, b = 0, c = 0, counter = 1;
    const next = () => {
      const sum = (((a + b) | 0) + counter) | 0;
      counter = (counter + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + sum) | 0;
      return sum >>> 0;
    };
    const seed = (s0, s1, s2, s3) => {
      a = s0 | 0;
      b = s1 | 0;
      c = s2 | 0;
      counter = s3 | 0;
      for (let round = 0; round < 15; round += 1) next();
    };
    return { __proto__: null, next, seed };
  };
  const numbers = stream();
  const secrets = stream();

  // Few programs ask for numbers: the streams begin when one does.
  let begun = false;
  const begin = () => {
    const words = kit.seed;
    numbers.seed(words.a, words.b, words.c, words.d);
    secrets.seed(words.e, words.f, words.g, words.h);
    begun = true;
  };

  return {
    __proto__: null,
    seed: () => {
      begun = false;
    },
    secret: () => {
      if (!begun) begin();
      return secrets.next();
    },
    random: () => {
      if (!begun) begin();
      return (numbers.next() >>> 5) / 134217728 + (numbers.next() >>> 6) / 9007199254740992;
    },
  };
})
