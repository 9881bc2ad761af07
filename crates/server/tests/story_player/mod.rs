//! The only module through which stories use the API.

pub(crate) mod enclave;
pub(crate) mod executor;
mod journal;
mod plot;
pub(crate) mod stream;

pub(crate) use plot::Plot;

use engine::policies::{NewRule, PolicyOwner, PolicySet};
use engine::{Clock, Config, Engine, ExecutionStart, ManualClock};
use futures_util::StreamExt;
use lifecycle::{
    Answer, AnswerExtras, CallerName, Entry, Event, ExecutionId, Json, PolicyRule, Rejection, Seq,
    State, Timestamp,
};
use plot::Person;
use processes::ProcessSpawner;
use sources::ProcessTool;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::sqlite::SqliteStore;
use tools::Catalogue;

/// Plays the plot and returns its journal as text.
pub(crate) async fn tell(plot: &Plot) -> String {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at(Timestamp(1_700_000_000_000));
    let mut edition = 1;
    let manual = Clock::Manual(clock.clone());
    let mut server = Server::start(plot, edition, folder.path(), manual).await;
    let start = ExecutionStart {
        program: plot.program.clone(),
        caller: CallerName("teller".into()),
        limits: plot.limits,
    };
    let execution = server.engine.submit(start).await.unwrap();
    let mut people: VecDeque<_> = plot.people.iter().cloned().collect();
    let mut heard: Vec<Entry> = vec![];
    loop {
        let after = heard.last().map_or(Seq(0), |entry| entry.seq);
        let mut entries = server.engine.follow(execution, after);
        let Some(entry) = entries.next().await else { break };
        let entry = entry.unwrap();
        let event = entry.event.clone();
        heard.push(entry);
        match event {
            Event::TimerSet { due, .. } => ring(&clock, due, &heard),
            Event::Paused { .. } => {
                while let Some(person) = people.front().filter(|person| prepares(person)) {
                    if let Person::Adds(rule) = person {
                        add(&server.engine, rule).await;
                    } else {
                        edition += u32::from(matches!(person, Person::RestartsWithOtherTools));
                        server.stop().await;
                        let clock = Clock::Manual(clock.clone());
                        server = Server::start(plot, edition, folder.path(), clock).await;
                    }
                    people.pop_front();
                }
                act(&server.engine, execution, &mut people).await;
            }
            _ => {}
        }
    }
    holds(&server.engine, execution, &heard).await;
    server.stop().await;
    heard.iter().map(journal::line).collect()
}

struct Server {
    engine: Engine,
    store: SqliteStore,
    /// The spawner for commands, if the plot has commands.
    processes: Option<ProcessSpawner>,
}

impl Server {
    async fn start(plot: &Plot, edition: u32, folder: &std::path::Path, clock: Clock) -> Self {
        let store = SqliteStore::open(folder).unwrap();
        let catalogue = Catalogue::new(vec![Arc::new(plot.tools(edition))]).unwrap();
        let processes = plot.has_commands.then(|| commands(&catalogue));
        let mut config = Config::new(store.clone(), catalogue);
        let policies = PolicySet::open(Arc::new(store.clone()), plot.policy.clone()).await.unwrap();
        config.policies = Arc::new(policies);
        config.clock = clock;
        config.sandbox.program =
            sandbox::RunnerProgramPath::At(env!("CARGO_BIN_EXE_children-for-tests").into());
        config.sandbox.warm_runners = 1;
        Self { engine: Engine::start(config).await.unwrap(), store, processes }
    }

    async fn stop(self) {
        self.engine.shutdown().await;
        if let Some(processes) = self.processes {
            processes.shutdown().await;
        }
        self.store.close().await;
    }
}

/// Adds commands to the programs' tools.
fn commands(catalogue: &Catalogue) -> ProcessSpawner {
    let program = processes::SelfProgram::At(env!("CARGO_BIN_EXE_children-for-tests").into());
    let processes =
        ProcessSpawner::start(&processes::Config { program, ..Default::default() }).unwrap();
    let run = sources::config::ProcessRun::default();
    let tool = ProcessTool::new(run, &processes, std::path::Path::new("/"), None);
    catalogue.add(Arc::new(tool)).unwrap();
    processes
}

/// Advances the clock to the next timer, once all timers of the same step are recorded.
fn ring(clock: &ManualClock, due: Timestamp, heard: &[Entry]) {
    let now = heard.last().map_or(Timestamp(0), |entry| entry.at);
    clock.advance(Duration::from_millis(due.ms_since(now)));
}

/// Whether a person's action precedes an answer.
fn prepares(person: &Person) -> bool {
    matches!(person, Person::RestartsTheServer | Person::RestartsWithOtherTools | Person::Adds(_))
}

/// Adds a rule, which applies immediately.
async fn add(engine: &Engine, rule: &PolicyRule) {
    let PolicyRule { pattern, action, editable, .. } = rule.clone();
    let new = NewRule { owner: PolicyOwner::Org, pattern, action, editable, position: None };
    engine.policies().add(new, Timestamp(0)).await.unwrap();
}

/// Answers the oldest open question, or ends the execution.
async fn act(engine: &Engine, execution: ExecutionId, people: &mut VecDeque<Person>) {
    let by = CallerName("person".into());
    let state = engine.look_up(execution).await.unwrap().state;
    let question = state.open_questions().next().expect("a pause asks something").id;
    people.retain(|person| !matches!(person, Person::Requests(_)));
    let person = people.pop_front().expect("somebody is left to answer");
    let rider = match &person {
        Person::AcceptsFromNowOn => AnswerExtras::Remember,
        Person::AcceptsWith(text) => AnswerExtras::Arguments(Json::parse(text.clone()).unwrap()),
        _ => AnswerExtras::Nothing,
    };
    let answer = match person {
        Person::Accepts | Person::AcceptsFromNowOn | Person::AcceptsWith(_) => {
            Answer::Accept { content: None }
        }
        Person::Says(text) => Answer::Accept { content: Some(Json::parse(text).unwrap()) },
        Person::Declines => Answer::Decline,
        Person::WavesAway => Answer::Cancel,
        Person::CancelsTheProgram => return engine.cancel(execution, by).await.unwrap(),
        Person::RestartsTheServer
        | Person::RestartsWithOtherTools
        | Person::Adds(_)
        | Person::Requests(_) => unreachable!("taken out before"),
    };
    match engine.answer_with(question, answer.clone(), by.clone(), rider).await {
        Ok(_) => {}
        Err(engine::Error::Rejected(Rejection::BadAnswer(_))) => {
            return Box::pin(act(engine, execution, people)).await;
        }
        Err(error) => panic!("{error}"),
    }
    let again = engine.answer_question(question, answer, by).await;
    assert!(again.is_err(), "a second answer was accepted");
}

/// Asserts the invariants that hold after every story.
async fn holds(engine: &Engine, execution: ExecutionId, heard: &[Entry]) {
    let mut rebuilt = State::default();
    for entry in heard {
        rebuilt.apply(entry.at, &entry.event);
    }
    assert_eq!(rebuilt, engine.look_up(execution).await.unwrap().state);
    for (n, _) in heard.iter().enumerate() {
        let after = Seq(n as u64);
        let suffix: Vec<_> = engine.follow(execution, after).map(|e| e.unwrap()).collect().await;
        assert_eq!(suffix, heard[n..], "a follower from {after} hears something else");
    }
}
