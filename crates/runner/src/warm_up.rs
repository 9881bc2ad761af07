//! Programs for the warm-up: they touch what programs usually touch, so that a zygote and a waiting runner
//! have it in memory.

use crate::convert;
use crate::guest_world::GuestWorld;
use crate::prepare::{self, RunnableText};
use crate::session::compile;
use lifecycle::ValueConvention;
use protocols::execbox::ToRunner;
use rquickjs::{Promise, Value};

/// Runs a small program that touches what programs usually touch, in a world that is discarded afterwards.
pub(crate) fn rehearse(world: &GuestWorld) {
    const PROGRAM: &str = "const rows: { id: number }[] = [{ id: 1 }, { id: 2 }];\n\
        console.log('rehearsal', rows, new Map([[1, new Date()]]), Math.random());\n\
        const text = JSON.stringify(rows.map((row) => ({ ...row, name: `n${row.id}` })));\n\
        setTimeout(() => {}, 1); tools.demo.add({ a: 1 });\n\
        try { null.x } catch (error) { console.error(error) }\n\
        await Promise.all([null, 1]); return JSON.parse(text)";
    try_out(world, PROGRAM, ValueConvention::ExplicitReturn);
}

/// Runs a program that waits for nothing, and discards its value.
fn try_out(world: &GuestWorld, program: &str, convention: ValueConvention) {
    let Ok(RunnableText(text)) = prepare::prepare(program, convention) else { return };
    world.host.allow_cpu(u64::MAX);
    world.context.with(|ctx| {
        let program = compile(&ctx, &text, convention);
        let main = program.and_then(|program| program.call::<_, Promise<'_>>(()));
        let value = main.and_then(|promise| promise.finish::<Value<'_>>());
        let _ = value.map(|value| convert::to_json(&ctx, value).is_ok());
        let _ = convert::from_json(&ctx, convert::raw("{\"a\":[1,\"b\"]}"));
    });
}

/// An order that exercises the steps of every program in a runner.
pub const REHEARSAL: &str = concat!(
    r#"{"type":"execute","id":"run","code":"await null; 1 + 1","options":{"timeoutMs":1000,"memoryLimitBytes":67108864,"maxLogLines":1,"maxLogChars":1},"providers":[],"airlock":{"seed":"0000000000000000000000000000000000000000000000000000000000000000","startMs":0,"convention":"last_expression","prepared":false,"prelude":2,"cpuMs":1000,"unawaited":"wait","replayInputs":0,"replayCpuMs":1}}"#,
    "\n"
);

/// Runs the steps of every program once in a world that is about to wait, so that its process has its own
/// copy of the pages they touch. Leaves nothing that a guest could see.
pub(crate) fn limber_up(world: &GuestWorld) {
    let Ok(ToRunner::Execute(execute)) = ToRunner::decode(REHEARSAL.trim_end().as_bytes()) else {
        return;
    };
    try_out(world, &execute.code, ValueConvention::LastExpression);
}
