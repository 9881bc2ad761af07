//! Hints for features that Node and browsers have and this world has not.

/// The hint after `x is not defined`, for names that people and models expect.
pub(super) fn global(class: &str, message: &str, outside: &str) -> Option<String> {
    if class != "ReferenceError" {
        return None;
    }
    let name = message.strip_suffix(" is not defined")?;
    let outside = reached(outside);
    Some(match name {
        "require" => format!("there are no modules here; {outside}"),
        "module" | "exports" => "a program is no module; it gives its value with `return` or as its last expression, and items with `emit(value)`".to_owned(),
        "process" => format!("there is no process and no environment here; {outside}, and settings are passed in the program's text"),
        "Buffer" => "use Uint8Array: TextEncoder and TextDecoder for texts, toBase64(), Uint8Array.fromBase64(), toHex() and Uint8Array.fromHex() for encodings".to_owned(),
        "__dirname" | "__filename" => format!("there are no files here; {outside}"),
        "global" | "window" | "self" => "the global object is `globalThis`".to_owned(),
        "document" | "navigator" | "location" | "localStorage" | "sessionStorage" | "alert" | "prompt" | "confirm" => {
            format!("this is no browser; {outside}")
        }
        "Deno" | "Bun" => format!("this is neither Node, Deno nor Bun; {outside}"),
        "XMLHttpRequest" | "WebSocket" | "EventSource" | "axios" | "Request" | "Response" | "Headers" => {
            format!("there is no network here; {outside}")
        }
        "setImmediate" | "requestAnimationFrame" => "use setTimeout or queueMicrotask".to_owned(),
        "clearImmediate" | "cancelAnimationFrame" => "use clearTimeout".to_owned(),
        "Blob" | "File" | "FormData" | "ReadableStream" | "WritableStream" | "TransformStream" => {
            "use texts and Uint8Array".to_owned()
        }
        "WeakRef" | "FinalizationRegistry" => "they show when memory is collected, which no replay can repeat; use Map or WeakMap".to_owned(),
        "SharedArrayBuffer" | "Atomics" | "Worker" => "a program has one thread; use `await Promise.all([…])` for calls at the same time".to_owned(),
        _ => return None,
    })
}

/// The message about the import of a module.
pub(crate) fn module(specifier: &str, outside: &str) -> String {
    let outside = reached(outside);
    let name = specifier.strip_prefix("node:").unwrap_or(specifier);
    let root = name.split('/').next().unwrap_or(name);
    match root {
        "fs" | "path" | "os" | "child_process" | "process" => {
            format!("there are no files and no processes here; {outside}")
        }
        "http" | "https" | "net" | "tls" | "dns" | "axios" | "node-fetch" | "undici" | "got"
        | "ws" => {
            format!("there is no network here; {outside}")
        }
        "buffer" | "stream" => "use Uint8Array, TextEncoder and TextDecoder".to_owned(),
        "crypto" => {
            "use the global `crypto`: randomUUID, getRandomValues, subtle.digest".to_owned()
        }
        "url" | "querystring" => "use the globals URL and URLSearchParams".to_owned(),
        "util" => "use structuredClone, TextEncoder and console".to_owned(),
        "events" => "use EventTarget".to_owned(),
        "timers" => {
            "use setTimeout: `await new Promise((done) => setTimeout(done, ms))`".to_owned()
        }
        "worker_threads" | "cluster" => "a program has one thread".to_owned(),
        _ => format!("there are no modules here; {outside}"),
    }
}

fn reached(outside: &str) -> String {
    match outside {
        "" => "this program was given no tools".to_owned(),
        outside => format!("what is outside is reached through {outside}"),
    }
}
