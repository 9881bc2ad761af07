//! One guest's world: a runtime, a context and the prelude's functions. A world serves one execution.

use crate::evaluator;
use crate::heap::{GuestHeap, HeapSnapshot, RESERVE_BYTES, heap_bytes_max};
use crate::host::GuestHost;
use crate::host_functions;
use crate::link::LinkReader;
use crate::loops;
use crate::prelude;
use crate::rejections::UnhandledRejections;
use crate::run_order::RunnerPurpose;
use crate::session::{self, SessionExit};
use crate::stack;
use crate::usage;
use crate::warm_up;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// The first version of the guest's globals in which an unhandled rejection is an error.
const REJECTIONS_COUNT_SINCE: u32 = 2;

/// Least memory a guest gets: less would not hold the world itself.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// A host does not reuse a process that has grown by this much.
const GROWTH_BYTES_MAX: u64 = 8 << 20;

/// The exit code of a runner whose link was closed by the engine.
const EXIT_CLOSED: i32 = 0;
/// The exit code of a runner whose link broke or carried an invalid message.
const EXIT_BROKEN: i32 = 2;
/// The exit code of a runner whose replay diverged.
const EXIT_DIVERGED: i32 = 3;

/// A guest's world, ready to run one program.
pub struct GuestWorld {
    // Fields are dropped in this order: functions before the context they live in, the context before its runtime.
    pub(crate) hooks: PreludeHooks,
    pub(crate) context: Context,
    runtime: Runtime,
    pub(crate) host: Rc<GuestHost>,
    /// `None` if the version of the globals ignores rejections.
    pub(crate) rejections: Option<Rc<UnhandledRejections>>,
    prelude: u32,
    heap: GuestHeap,
    /// The snapshot of its heap before the first program.
    picture: Option<HeapSnapshot>,
}

/// The prelude's functions, by which the session drives the guest.
pub(crate) struct PreludeHooks {
    pub(crate) start: PreludeHook,
    pub(crate) furnish: PreludeHook,
    pub(crate) provide: PreludeHook,
    pub(crate) resolve_call: PreludeHook,
    pub(crate) reject_call: PreludeHook,
    pub(crate) fire: PreludeHook,
    pub(crate) describe: PreludeHook,
    pub(crate) describe_crash: PreludeHook,
    pub(crate) warm: PreludeHook,
    pub(crate) hide: PreludeHook,
    pub(crate) evaluate: PreludeHook,
    /// Versions from 2 on serialize values in their own forms.
    pub(crate) write_value: Option<PreludeHook>,
    /// Versions from 2 on replace parts with bytes in a tool's result by files.
    pub(crate) receive_files: Option<PreludeHook>,
}

/// A prelude function, stored between two turns of the guest.
pub(crate) type PreludeHook = Persistent<Function<'static>>;

impl std::fmt::Debug for GuestWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("prelude", &self.prelude).finish_non_exhaustive()
    }
}

impl GuestWorld {
    /// A world in which everything that a typical program touches has been touched once, so that a forked
    /// child faults few pages and opens no file: the time zone is read here.
    pub fn warm() -> Self {
        know_the_processor();
        let rehearsal =
            Self::fresh(prelude::PRELUDE_VERSION).expect("the newest prelude is embedded");
        let compiled = rehearsal.context.with(|ctx| prelude::compile_newest(&ctx));
        compiled.expect("every embedded part compiles");
        warm_up::rehearse(&rehearsal);
        drop(rehearsal);
        let world = Self::fresh(prelude::PRELUDE_VERSION).expect("the newest prelude is embedded");
        world.load_parts();
        world.context.with(|ctx| {
            ctx.eval::<(), _>("new Date(0).getTimezoneOffset(); (async () => { await null })()")
                .expect("a constant program that every engine runs");
            while ctx.execute_pending_job() {}
        });
        world
    }

    /// Called in a runner that will wait before it serves: it has time to run the code in advance.
    pub fn limber_up(&self) {
        warm_up::limber_up(self);
    }

    /// Serves executions on `link` until it closes; the process has no other purpose and ends with this
    /// exit code: 0 when the engine closed the link, 2 when the link broke, 3 when a replay diverged.
    ///
    /// Makes only these system calls: reads and writes on the link, memory, `clock_gettime` and
    /// `getrusage`.
    pub fn serve(self, link: UnixStream) -> i32 {
        let stream = Rc::new(link);
        let mut inbox = LinkReader::new(Rc::clone(&stream));
        let mut held = RunnerState::Waiting(self);
        let peak_before = usage::memory_peak_bytes();
        let mut n_done = 0_u64;
        let exit_code = loop {
            let order = match RunnerPurpose::next(&mut inbox) {
                Ok(Some(RunnerPurpose::Program(order))) => order,
                Ok(Some(RunnerPurpose::Session(open))) => {
                    let Some(world) = held.ready(prelude::PRELUDE_VERSION) else {
                        return EXIT_BROKEN;
                    };
                    world.host.outbox.connect(Rc::clone(&stream));
                    let is_closed = evaluator::serve(&world, &open, inbox);
                    let exit_code = if is_closed { EXIT_CLOSED } else { EXIT_BROKEN };
                    return RunnerState::Spent(world).leave(exit_code);
                }
                Ok(None) => break EXIT_CLOSED,
                Err(_) => break EXIT_BROKEN,
            };
            let Some(mut world) = held.ready(order.prelude()) else {
                order.refuse_prelude(&stream);
                held = RunnerState::Nothing;
                continue;
            };
            world.host.outbox.connect(Rc::clone(&stream));
            let is_hosted = !order.is_journalled();
            // A host reuses its link, and so does an engine that has used it twice.
            let is_kept = is_hosted || n_done >= 1;
            if is_kept {
                world.keep_picture();
            }
            let end = session::run(&world, &order, &mut inbox);
            held = RunnerState::Spent(world);
            n_done += 1;
            match end {
                // The engine that leased it takes another one.
                SessionExit::Done if is_hosted && has_grown(peak_before) => break EXIT_CLOSED,
                // The next world is created while no program waits for it.
                SessionExit::Done if is_kept => held = held.renewed(order.prelude()),
                SessionExit::Done => {}
                SessionExit::Closed | SessionExit::Broken | SessionExit::Diverged => {
                    break end.exit_code();
                }
            }
        };
        held.leave(exit_code)
    }

    /// A new world with one version of the guest's globals; `None` if there is no such version.
    pub(crate) fn fresh(version: u32) -> Option<Self> {
        let heap = GuestHeap::new().expect("memory for a heap");
        let runtime = Runtime::new_with_alloc(heap.clone()).expect("memory for a runtime");
        runtime.set_max_stack_size(stack::guest_stack_bytes(version));
        let context = Context::full(&runtime).expect("memory for a context");
        let host = GuestHost::new();
        let polled = Rc::clone(&host);
        let hooks = context.with(|ctx| {
            let hooks = prelude::base(&ctx, version)?.and_then(|build| {
                let functions = host_functions::functions(&ctx, &host, version)?;
                let hooks: Object<'_> = build.call((functions.clone(),))?;
                PreludeHooks::save(&ctx, &hooks, &functions, loops::hide(&ctx, &host)?)
            });
            Some(hooks.expect("every embedded prelude runs"))
        })?;
        // Only now: building the world does not count as the guest's time.
        runtime.set_interrupt_handler(Some(Box::new(move || polled.tick())));
        let rejections =
            (version >= REJECTIONS_COUNT_SINCE).then(|| UnhandledRejections::track(&runtime));
        Some(Self {
            hooks,
            context,
            runtime,
            host,
            rejections,
            prelude: version,
            heap,
            picture: None,
        })
    }

    /// Loads the parts that most programs touch.
    fn load_parts(&self) {
        self.host.allow_cpu(u64::MAX);
        self.context.with(|ctx| {
            let warm = self.hooks.warm.clone().restore(&ctx).expect("saved in this world");
            warm.call::<_, ()>(()).expect("every embedded part runs");
        });
    }

    /// Takes a snapshot that is restored after each program. Called before the first program.
    fn keep_picture(&mut self) {
        if self.picture.is_none() {
            self.load_parts();
            self.picture = self.heap.picture();
        }
    }

    /// Restores the state before its program, if there is a snapshot.
    #[expect(
        unsafe_code,
        reason = "a heap is put back under values that are as old as its picture"
    )]
    fn restored(self) -> Option<Self> {
        self.host.reset_program();
        let picture = self.picture.as_ref()?;
        // SAFETY: the picture is of this heap. Addresses into it are held by the runtime, the context, the
        // hooks and the closures of the host's functions, all of which were made by `fresh`, before the
        // picture; the session has dropped what it held, and nothing else holds a value of the guest's. The
        // engine is not running.
        unsafe { self.heap.restore(picture) };
        Some(self)
    }

    pub(crate) fn limit_memory(&self, bytes: u64) {
        let bytes = bytes.max(MEMORY_BYTES_MIN);
        self.heap.limit().set(bytes);
        if self.is_of_first_globals() {
            self.runtime.set_memory_limit(size(bytes));
        }
    }

    /// Whether not even a small block could be allocated since the memory was limited or
    /// [`Self::begin_turn`] was called.
    pub(crate) fn is_exhausted(&self, bytes: u64) -> bool {
        let limit = self.heap.limit();
        // In this version the engine itself enforces the limit, and does not report what it refuses.
        let (bytes, of_first) = (bytes.max(MEMORY_BYTES_MIN), self.is_of_first_globals());
        limit.has_refused_little() || (of_first && limit.has_reached(bytes - bytes / 8))
    }

    /// Whether its globals are of version 1. Journals may depend on how much memory and stack its programs
    /// had: both must not change, and neither must the messages about them.
    pub(crate) const fn is_of_first_globals(&self) -> bool {
        self.prelude == 1
    }

    /// Resets the record of refused requests.
    pub(crate) fn begin_turn(&self) {
        self.heap.limit().forget_refusals();
    }

    /// Whether nearly all of its memory is in use, after garbage collection.
    pub(crate) fn is_full(&self, ctx: &Ctx<'_>, bytes: u64) -> bool {
        let limit = heap_bytes_max(bytes.max(MEMORY_BYTES_MIN));
        let is_full = || self.heap.bytes_in_use() > limit - limit / 8;
        is_full() && {
            ctx.run_gc();
            is_full()
        }
    }

    /// Lends memory so that a guest that has used up its own can be described.
    pub(crate) fn lend_memory(&self, bytes: u64) {
        self.heap.limit().lend();
        if self.is_of_first_globals() {
            self.runtime.set_memory_limit(size(bytes.max(MEMORY_BYTES_MIN)) + RESERVE_BYTES);
        }
    }
}

/// Whether this process has grown so much that a new one is better: memory is not always returned to the system.
fn has_grown(peak_before: u64) -> bool {
    usage::memory_peak_bytes().saturating_sub(peak_before) > GROWTH_BYTES_MAX
}

/// Queries the processor's features once, so that no runner has to: virtual machines answer slowly.
fn know_the_processor() {
    #[cfg(target_arch = "x86_64")]
    std::hint::black_box(std::is_x86_feature_detected!("avx2"));
}

impl SessionExit {
    /// The exit code of the process after such an end.
    const fn exit_code(self) -> i32 {
        match self {
            Self::Done | Self::Closed => EXIT_CLOSED,
            Self::Broken => EXIT_BROKEN,
            Self::Diverged => EXIT_DIVERGED,
        }
    }
}

impl PreludeHooks {
    fn save<'js>(
        ctx: &rquickjs::Ctx<'js>,
        hooks: &Object<'js>,
        functions: &Object<'js>,
        hide: Function<'js>,
    ) -> rquickjs::Result<Self> {
        let hook = |name: &str| -> rquickjs::Result<PreludeHook> {
            Ok(Persistent::save(ctx, hooks.get::<_, Function<'js>>(name)?))
        };
        // Setups have no value: they add their functions to the host's.
        let added = |name: &str| -> rquickjs::Result<Option<PreludeHook>> {
            let function: Option<Function<'js>> = functions.get(name)?;
            Ok(function.map(|function| Persistent::save(ctx, function)))
        };
        Ok(Self {
            start: hook("start")?,
            furnish: hook("furnish")?,
            provide: hook("provide")?,
            resolve_call: hook("resolveCall")?,
            reject_call: hook("rejectCall")?,
            fire: hook("fire")?,
            describe: hook("describe")?,
            describe_crash: hook("describeCrash")?,
            warm: hook("warm")?,
            hide: Persistent::save(ctx, hide),
            evaluate: hook("evaluate")?,
            write_value: added("writeValue")?,
            receive_files: added("receiveFiles")?,
        })
    }
}

/// What a runner holds between two orders. Most get only one: a spent world is freed when the next order
/// shows that there are more, and not while a parent waits for the process to end.
enum RunnerState {
    Waiting(GuestWorld),
    Spent(GuestWorld),
    Nothing,
}

impl RunnerState {
    /// A world that has run nothing yet, with these globals; `None` if there is no such version.
    fn ready(self, prelude: u32) -> Option<GuestWorld> {
        match self {
            Self::Waiting(world) if world.prelude == prelude => Some(world),
            Self::Waiting(_) | Self::Spent(_) | Self::Nothing => GuestWorld::fresh(prelude),
        }
    }

    /// Replaces a spent world by a new one.
    fn renewed(self, prelude: u32) -> Self {
        let restored = match self {
            Self::Waiting(world) | Self::Spent(world) => world.restored(),
            Self::Nothing => None,
        };
        restored.or_else(|| GuestWorld::fresh(prelude)).map_or(Self::Nothing, Self::Waiting)
    }

    /// The kernel reclaims a dead process's memory faster than we could free it object by object.
    fn leave(self, exit_code: i32) -> i32 {
        if let Self::Waiting(world) | Self::Spent(world) = self {
            world.host.outbox.disconnect();
            std::mem::forget(world);
        }
        exit_code
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX - RESERVE_BYTES)
}
