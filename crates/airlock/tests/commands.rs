//! Commands that programs run, under the real binary: the approval, their environment, their output, and that no
//! process of theirs remains in any case.

use crate::server_fixture::{airlock, wait_for};
use crate::source_fixture::House;
use serde_json::{Value, json};
use std::path::Path;

/// A server whose programs may run commands in a folder of their own; without a question if `asks` is false.
fn house(more: &str, asks: bool) -> (House, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let approve = "[[policies]]\npattern = 'process.run'\naction = 'approve'\n";
    let config = format!(
        "[processes.run]\ndirectory = '{}'\ntime_ms_max = 60000\n{more}\n{}",
        folder.path().display(),
        if asks { "" } else { approve },
    );
    (House::with(&config), folder)
}

fn run(args: &Value) -> String {
    format!("return await tools.process.run({args})")
}

fn shell(script: &str) -> Value {
    json!({ "argv": ["sh", "-c", script] })
}

/// The result of a command that ended normally.
fn done(exit_code: i32, stdout: &str, stderr: &str) -> Value {
    json!({
        "exitCode": exit_code, "stdout": stdout, "stderr": stderr,
        "truncated": false, "timedOut": false, "exceeded": null,
    })
}

/// Starts a program without waiting for it, and returns its execution's id.
fn begin(house: &House, code: &str) -> String {
    let body = json!({ "code": code }).to_string();
    let told = house.admin().post("/api/executions?wait=0", &body).json();
    told["executionId"].as_str().unwrap().to_owned()
}

fn events(house: &House, execution: &str, kind: &str) -> Vec<Value> {
    let path = format!("/api/executions/{execution}/events?type={kind}");
    house.admin().get(&path).json()["events"].as_array().unwrap().clone()
}

/// All progress that its calls have reported so far.
fn progress(house: &House, execution: &str) -> String {
    let words = events(house, execution, "progress");
    words.iter().map(|event| event["text"].as_str().unwrap()).collect()
}

/// The number that a command has written to a file, once its line is complete.
fn number_in(file: &Path) -> i32 {
    wait_for(|| {
        let text = std::fs::read_to_string(file).ok()?;
        text.strip_suffix('\n')?.lines().last()?.parse().ok()
    })
}

fn gone(pid: i32) {
    wait_for(|| (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
}

#[test]
fn commands_are_there_only_where_the_configuration_wants_them_and_nobody_blocks_them() {
    let house = House::with("");
    let told = house.admin().execute(&run(&shell("true"))).json();
    let missing = json!({
        "ok": false,
        "error": {
            "code": "tool_not_found",
            "message": "Tool not found: process.run",
            "details": { "path": "process.run", "suggestions": [] },
        },
    });
    assert_eq!(told["structured"]["result"], missing, "{told}");
    let (house, _folder) = self::house("[[policies]]\npattern='process.*'\naction='block'\n", true);
    let told = house.admin().execute(&run(&shell("true"))).json();
    let text = told["text"].as_str().unwrap();
    assert!(text.contains("Tool blocked by policy: process.run"), "{told}");
}

#[test]
fn a_command_asks_first_and_what_it_prints_is_told_as_it_comes() {
    let (house, folder) = house("", true);
    let script = "echo first; until test -e go; do sleep 0.02; done; echo second >&2; exit 4";
    let asked = house.admin().execute(&run(&shell(script)));
    let message = asked.json()["structured"]["interaction"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.starts_with("Run a command on this machine?\n\nArguments:\n"), "{message}");
    assert!(message.contains("until test -e go"), "{message}");
    let rule = json!({ "owner": "org", "pattern": "*", "action": "approve" });
    house.admin().post("/api/policies", &rule.to_string());
    assert_eq!(house.verdict("process.run"), "ask", "a star approves no commands");

    let id = asked.question();
    let accepted = format!("/api/executions/{id}/resume?wait=0");
    let about = house.admin().post(&accepted, r#"{"action":"accept"}"#).json();
    let execution = about["executionId"].as_str().unwrap();
    wait_for(|| progress(&house, execution).contains("first").then_some(()));
    std::fs::write(folder.path().join("go"), "").unwrap();
    let told = wait_for(|| events(&house, execution, "finished").pop());
    assert_eq!(told["result"], done(4, "first\n", "second\n"));
    assert_eq!(progress(&house, execution), "first\nsecond\n");
}

#[test]
fn a_command_finds_a_small_environment_its_folder_and_its_input() {
    let (house, folder) =
        house("[processes.run.env]\nGIVEN = 'by the file'\nBOTH = 'file'\n", false);
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let args = json!({
        "argv": ["sh", "-c", "env | grep -v '^_=\\|^PWD=\\|^SHLVL=\\|^OLDPWD='; pwd -P; cat"],
        "cwd": "below", "env": { "BOTH": "call" }, "stdin": "fed",
    });
    let told = house.run(&run(&args));
    let stdout = told["stdout"].as_str().unwrap();
    let (env, rest) = stdout.split_at(stdout.find("/below").unwrap());
    let mut env: Vec<_> = env.lines().collect();
    let here = env.pop().unwrap();
    env.sort_unstable();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(env, ["BOTH=call", "GIVEN=by the file", "LANG=C.UTF-8", path]);
    assert_eq!(Path::new(here), folder.path().canonicalize().unwrap());
    assert_eq!(rest, "/below\nfed");
}

#[test]
fn what_is_wrong_with_a_command_is_told_and_nobody_is_asked_about_nonsense() {
    let (house, _folder) = house("", true);
    let caught = |args: &Value| {
        let code = format!("try {{ {} }} catch (error) {{ return error.message }}", run(args));
        house.admin().execute(&code)
    };
    for args in
        [json!({ "argv": [] }), json!({ "argv": ["a\u{0}"] }), json!({ "argv": ["a"], "x": 1 })]
    {
        let told = caught(&args).result();
        assert!(told.as_str().unwrap().contains("process.run"), "{told}");
    }
    let missing = caught(&json!({ "argv": ["/nowhere/at/all"] }));
    let told = house.admin().resume(&missing.question(), "accept").result();
    assert_eq!(told, "The command could not be started: command not found.");
}

#[test]
fn output_is_bounded_and_only_its_middle_is_left_out() {
    let (house, _folder) = house("", false);
    let script = "echo begins; yes 0123456789 | head -c 3000000; echo ends";
    let code = format!(
        "const told = await tools.process.run({}); \
         return [told.truncated, told.stdout.slice(0, 6), told.stdout.slice(-5), told.stdout.length < 300000]",
        shell(script)
    );
    let execution = begin(&house, &code);
    let told = wait_for(|| events(&house, &execution, "finished").pop());
    assert_eq!(told["result"], json!([true, "begins", "ends\n", true]), "{told}");
    let n_bytes = progress(&house, &execution).len();
    assert!((1..=64 << 10).contains(&n_bytes), "{n_bytes}");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_that_it_started() {
    let (house, folder) = house("", false);
    let mut args = shell("setsid sleep 1000 & echo $! > pid; echo began; sleep 1000");
    args["timeoutMs"] = 700.into();
    let told = house.run(&run(&args));
    assert_eq!((&told["timedOut"], &told["exitCode"]), (&json!(true), &json!(137)), "{told}");
    assert_eq!(told["stdout"], "began\n");
    gone(number_in(&folder.path().join("pid")));
    // A background process that a command leaves behind is killed too.
    let told = house.run(&run(&shell("sleep 1000 & echo $! > pid")));
    assert_eq!(told["exitCode"], 0, "{told}");
    gone(number_in(&folder.path().join("pid")));
}

#[test]
fn a_cancelled_program_takes_its_command_with_it() {
    let (house, folder) = house("", false);
    let execution = begin(&house, &run(&shell("echo $$ > pid; sleep 1000")));
    let pid = number_in(&folder.path().join("pid"));
    let told = house.admin().post(&format!("/api/executions/{execution}/cancel"), "{}");
    assert_eq!(told.status, 200, "{told:?}");
    gone(pid);
}

#[test]
fn a_server_killed_in_mid_command_ends_it_asks_and_never_runs_it_twice_by_itself() {
    let (house, folder) = house("", false);
    let execution =
        begin(&house, &run(&shell("echo $$ >> pid; test $(wc -l < pid) = 2 || sleep 1000")));
    let file = folder.path().join("pid");
    let pid = number_in(&file);
    let house = house.again();
    gone(pid);
    let asked = wait_for(|| events(&house, &execution, "question").pop());
    assert_eq!(asked["kind"], "inDoubt", "{asked}");
    let n_runs = || std::fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(n_runs(), 1, "nobody said that it may run again");
    let id = asked["executionId"].as_str().unwrap();
    let again = json!({ "action": "accept", "content": { "choice": "retry" } }).to_string();
    let told = house.admin().post(&format!("/api/executions/{id}/resume"), &again);
    assert_eq!((told.result(), n_runs()), (done(0, "", ""), 2));
}

#[test]
fn commands_are_kept_to_the_sandbox_of_the_configuration() {
    let open = tempfile::tempdir().unwrap();
    let sandbox = format!(
        "[processes.sandbox]\nwritable = ['{}']\nnetwork = 'none'\nprocesses = 20\n",
        open.path().display()
    );
    let (house, folder) = house(&sandbox, false);
    let script = format!("echo in > {}/file; echo out > file", open.path().display());
    let told = house.run(&run(&shell(&script)));
    assert!(told["stderr"].as_str().unwrap().contains("Read-only file system"), "{told}");
    assert_eq!(std::fs::read_to_string(open.path().join("file")).unwrap(), "in\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let told = house.run(&run(&shell("while :; do sleep 1000 & done")));
    assert_eq!(told["exceeded"], "processes", "{told}");
}

#[test]
fn a_secret_that_a_command_prints_is_blotted_out_of_its_result_and_of_what_is_told() {
    let secret = format!("commands-{}-canary", std::process::id());
    let more = format!(
        "[sources.things.tools.ok]\nargv = ['true']\nread_only = true\n\
         [connections.things.main]\nenv = {{ TOKEN = '{secret}' }}\n"
    );
    let (house, _folder) = house(&more, false);
    house.ready("things");
    assert_eq!(house.run("return (await tools.things.org.main.ok()).ok"), true);
    let (one, other) = secret.split_at(7);
    let script = format!("printf 'it is {one}'; sleep 0.6; printf '{other}, they say'");
    let execution = begin(&house, &run(&shell(&script)));
    let told = wait_for(|| events(&house, &execution, "finished").pop());
    assert_eq!(told["result"], done(0, "it is [redacted], they say", ""));
    assert_eq!(progress(&house, &execution), "it is [redacted], they say");
}

#[test]
fn a_program_at_the_terminal_runs_commands_too() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("airlock.toml");
    std::fs::write(&config, "[processes.run]\n").unwrap();
    let said = |flag: &str| {
        let code = "return (await tools.process.run({ argv: ['echo', 'hello'] })).stdout";
        let words = ["run", "--config", config.to_str().unwrap(), flag, "-e", code];
        let told = airlock(&words).arg("--data-dir").arg(folder.path()).output().unwrap();
        (told.status.code(), String::from_utf8(told.stdout).unwrap())
    };
    assert_eq!(said("--yes"), (Some(0), "\"hello\\n\"\n".into()));
    assert_ne!(said("--no").0, Some(0));
}
