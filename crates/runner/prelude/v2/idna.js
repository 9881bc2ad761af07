// Names of hosts beyond ASCII, as IDNA writes them in ASCII: by the host, whose HTTP client maps them in the same way.
// Undefined where there is no such name.
(function (kit) {
  "use strict";

  const { host } = kit;

  return { __proto__: null, toAscii: (domain) => host.domainToAscii(domain) };
})
