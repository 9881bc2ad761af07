//! What each version of the guest's globals consists of.
//!
//! To add a global: write `prelude/vN/name.js`, a function that takes what the base captured and returns an object with the
//! global, and add `vN!(part "name", "globals")` to the overlay of version N. To change what is there already: write a
//! function that takes what the base captured, and add `vN!("name")` to the setups. A file below a released version's
//! folder never changes.

/// What one version changes in the version before it.
pub(super) struct PreludeOverlay {
    /// A function that takes the host's functions, builds a world and returns the hooks by which the session drives the
    /// guest. `None`: that of the version before.
    pub(super) base: Option<&'static str>,
    /// Functions that take what the base captured and change the finished world before the guest runs, in this order.
    pub(super) setups: &'static [&'static str],
    /// Parts that this version adds, or replaces by name.
    pub(super) parts: &'static [PreludePart],
}

/// A source that is compiled when a program first touches one of its globals, or when another part loads it.
pub(super) struct PreludePart {
    /// The name by which other parts load it.
    pub(super) name: &'static str,
    /// The globals that it defines, separated by spaces. Guests that list the global object see them in this order.
    pub(super) globals: &'static str,
    /// A function that takes what the base captured and returns an object with its globals and what other parts use.
    pub(super) source: &'static str,
}

/// Every version, oldest first: version 1 is the first.
pub(super) const OVERLAYS: &[PreludeOverlay] = &[
    V1,
    V2,
    #[cfg(test)]
    super::tests::NEXT,
];

macro_rules! v2 {
    ($name:literal) => {
        include_str!(concat!("../../prelude/v2/", $name, ".js"))
    };
    (part $name:literal, $globals:literal) => {
        PreludePart { name: $name, globals: $globals, source: v2!($name) }
    };
}

macro_rules! v1 {
    ($name:literal) => {
        include_str!(concat!("../../prelude/v1/", $name, ".js"))
    };
    (part $name:literal, $globals:literal) => {
        PreludePart { name: $name, globals: $globals, source: v1!($name) }
    };
}

const V1: PreludeOverlay = PreludeOverlay {
    base: Some(concat!(
        "(function (host) {\n\"use strict\";\n",
        v1!("capture"),
        v1!("parts"),
        v1!("clock"),
        v1!("globals"),
        "})"
    )),
    setups: &[],
    parts: &[
        v1!(part "tools", "tools emit fetch callTool parallel"),
        v1!(part "timers", "setTimeout setInterval clearTimeout clearInterval queueMicrotask"),
        v1!(part "crypto", "crypto"),
        v1!(part "clone", "structuredClone"),
        v1!(part "text", "TextEncoder TextDecoder"),
        v1!(part "url", "URL"),
        v1!(part "search_params", "URLSearchParams"),
        v1!(part "events", "Event CustomEvent EventTarget AbortController AbortSignal"),
        v1!(part "bytes", ""),
        v1!(part "console", ""),
        v1!(part "console_more", ""),
        v1!(part "errors", ""),
        v1!(part "evaluate", ""),
        v1!(part "hosted", ""),
        v1!(part "idna", ""),
        v1!(part "ipv6", ""),
        v1!(part "percent", ""),
        v1!(part "random", ""),
        v1!(part "show", ""),
        v1!(part "show_kinds", ""),
        v1!(part "url_host", ""),
        v1!(part "url_parse", ""),
    ],
};

const V2: PreludeOverlay = PreludeOverlay {
    base: None,
    setups: &[v2!("language"), v2!("intl_methods"), v2!("stack"), v2!("clock"), v2!("boundary")],
    parts: &[
        v2!(part "intl", "Intl"),
        v2!(part "clone", "structuredClone"),
        v2!(part "files", "ToolFile"),
        v2!(part "tools", "tools emit callTool parallel"),
        v2!(part "fetch", "fetch"),
        v2!(part "console", ""),
        v2!(part "errors", ""),
        v2!(part "idna", ""),
        v2!(part "show_kinds", ""),
        v2!(part "values", ""),
        // The part that version 2 wraps.
        PreludePart { name: "calls", globals: "", source: v1!("tools") },
        PreludePart { name: "clone_1", globals: "", source: v1!("clone") },
    ],
};
