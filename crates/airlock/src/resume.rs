//! `airlock resume`: answers a question and prints what followed.

use crate::executions::{outcome, question_text};
use crate::follow_and_prompt::{AttendOptions, follow_and_prompt};
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, input, print};
use clap::ArgGroup;
use client::{AirlockClient, Error, ExecutionRef, ExecutionStanding};
use lifecycle::{Answer, AnswerExtras, Json};
use std::fs::File;
use std::io;

/// Longest content of an answer: the server's own limit.
const CONTENT_BYTES_MAX: u64 = 2 << 20;

/// Answers a question and waits for what follows.
///
/// Prints the program's value as JSON when it ends, and its output to stderr. When it asks again,
/// prints the question, and the commands that answer it. Answering twice is harmless: the first answer counts,
/// and the second one receives its outcome.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(group(ArgGroup::new("which").required(true).args(["id", "execution_id"])))]
pub(crate) struct Args {
    /// The question's id, exec_…; or the execution's, run_…, for its oldest question.
    id: Option<String>,
    /// The same id, as an option.
    #[arg(long, value_name = "ID")]
    execution_id: Option<String>,
    /// The answer.
    #[arg(long, value_enum, default_value_t = AnswerActionArg::Accept)]
    action: AnswerActionArg,
    /// The content that the question asks for, a JSON object; @FILE reads it from a file, @- from stdin.
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    content: Option<String>,
    /// With accept, where the policy allows it: the arguments that replace the program's own,
    /// a JSON object; @FILE and @- as above.
    #[arg(
        long,
        value_name = "JSON|@FILE",
        allow_hyphen_values = true,
        conflicts_with = "remember"
    )]
    arguments: Option<String>,
    /// With accept: lets this execution call this tool, in its present version, again without a question.
    #[arg(long)]
    remember: bool,
    /// The server's reply, one line of JSON; further questions are not asked here.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "resume";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Programs, 4);

    fn run(self) -> VerbExit {
        resume(&self)
    }
}

/// The possible answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AnswerActionArg {
    /// Lets the call proceed.
    Accept,
    /// Refuses the call.
    Decline,
    /// Neither yes nor no: the call fails.
    Cancel,
}

const HELP: &str = "\
Examples:
  airlock resume exec_0b5c…                                     approve
  airlock resume exec_0b5c… --remember                          and do not ask for this tool again
  airlock resume exec_0b5c… --arguments '{\"to\":\"bob\"}'          approve with other arguments
  airlock resume exec_0b5c… --action decline
  airlock resume exec_0b5c… --content '{\"choice\":\"retry\"}'
  airlock resume --execution-id exec_0b5c… --content @answer.json
  airlock executions list --status paused                       what waits for an answer

Exit codes:
  0    the program ended, its value, if any, is on stdout
  1    the program failed; or there is no such question, or no server
  2    the command line made no sense
  3    a limit was reached: time, memory, calls or bytes
  4    the program failed after a call was declined
  6    it asks again; what it asks, and how to answer, is on stdout
  70   Airlock itself broke
  130  the execution was cancelled";

/// Answers, and prints what followed.
pub(crate) fn resume(args: &Args) -> VerbExit {
    let (answer, rider) = match parse_answer(args) {
        Ok(said) => said,
        Err(complaint) => {
            print::error(&complaint);
            return VerbExit::Usage;
        }
    };
    let named = args.id.as_deref().or(args.execution_id.as_deref()).unwrap_or_default();
    match named.parse() {
        Ok(id) => args.reach.visit_started(async |client| {
            perform_resume(&client, id, (&answer, &rider), args).await
        }),
        Err(error) => {
            print::error(&print::tamed(&error.to_string()));
            VerbExit::Failed
        }
    }
}

async fn perform_resume(
    client: &AirlockClient,
    id: ExecutionRef,
    said: (&Answer, &AnswerExtras),
    args: &Args,
) -> Result<VerbExit, Error> {
    let reach = &args.reach;
    if !args.json && print::is_somebody_there() {
        return stay(client, id, said, args).await;
    }
    let reply = client.resume_with(id, said.0, said.1).await?;
    if args.json {
        print::value(&reply.json);
    }
    match reply.standing {
        ExecutionStanding::Completed { .. } | ExecutionStanding::Failed { .. } if args.json => {
            outcome::exit_of(client, id).await
        }
        ExecutionStanding::Asks(_) if args.json => Ok(VerbExit::Paused),
        ExecutionStanding::Completed { .. } | ExecutionStanding::Failed { .. } => {
            outcome::print_finished(client, id).await
        }
        ExecutionStanding::Asks(asked) => {
            let origin = client.page_origin().await?;
            print::report(&question_text::question_text(
                &asked,
                reply.execution,
                &origin,
                &reach.flags(),
            ));
            Ok(VerbExit::Paused)
        }
        // The request had no timeout after which the server would reply this.
        ExecutionStanding::Running | ExecutionStanding::Parked => {
            Err(Error::Protocol("an answer that is neither a question nor the end".into()))
        }
    }
}

/// Answers, and asks later questions on this terminal.
async fn stay(
    client: &AirlockClient,
    id: ExecutionRef,
    (answer, rider): (&Answer, &AnswerExtras),
    args: &Args,
) -> Result<VerbExit, Error> {
    let execution = match id {
        ExecutionRef::Execution(execution) => Some(execution),
        ExecutionRef::Question(_) => client.execution(id).await?.execution,
    };
    let execution =
        execution.ok_or_else(|| Error::Protocol("a question of no execution".into()))?;
    client.answer_question(id, answer, rider).await?;
    let flags = args.reach.flags();
    let manner =
        AttendOptions { asks_here: true, json: false, is_call: false, has_headers: false, flags };
    follow_and_prompt(client, execution, &manner).await
}

fn parse_answer(args: &Args) -> Result<(Answer, AnswerExtras), String> {
    let read = |name, given: &Option<String>| {
        given.as_deref().map(|given| object(name, given)).transpose()
    };
    let content = read("--content", &args.content)?;
    let rider = match read("--arguments", &args.arguments)? {
        Some(edited) => AnswerExtras::Arguments(edited),
        None if args.remember => AnswerExtras::Remember,
        None => AnswerExtras::Nothing,
    };
    if args.action != AnswerActionArg::Accept && rider != AnswerExtras::Nothing {
        let name = if args.remember { "--remember" } else { "--arguments" };
        return Err(format!("{name} goes with --action accept only"));
    }
    let answer = match args.action {
        AnswerActionArg::Accept => Answer::Accept { content },
        AnswerActionArg::Decline => Answer::Decline,
        AnswerActionArg::Cancel => Answer::Cancel,
    };
    Ok((answer, rider))
}

/// Parses a JSON object, given here or in a file.
fn object(name: &str, given: &str) -> Result<Json, String> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some("") => return Err(format!("{name} @ needs the name of a file behind it")),
        Some("-") => input::read("stdin", io::stdin().lock(), CONTENT_BYTES_MAX)?.trim().to_owned(),
        Some(path) => {
            let file = File::open(path).map_err(|error| format!("cannot open {path}: {error}"))?;
            input::read(path, file, CONTENT_BYTES_MAX)?.trim().to_owned()
        }
    };
    let json = Json::parse(text).map_err(|error| format!("{name} is {error}"))?;
    match json.as_text().starts_with('{') {
        true => Ok(json),
        false => Err(format!("{name} must be a JSON object, such as {{\"choice\":\"retry\"}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use clap::error::ErrorKind;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Result<Args, ErrorKind> {
        let words = std::iter::once(&"resume").chain(words);
        Wrapper::try_parse_from(words).map(|wrapper| wrapper.args).map_err(|error| error.kind())
    }

    fn said(words: &[&str]) -> Result<Answer, String> {
        parse_answer(&args(words).unwrap()).map(|(answer, _)| answer)
    }

    #[test]
    fn a_question_is_named_once_and_accepting_is_usual() {
        assert_eq!(args(&["a"]).unwrap().id.as_deref(), Some("a"));
        let named = args(&["--execution-id", "a", "--server", "http://x"]).unwrap();
        assert_eq!(named.execution_id.as_deref(), Some("a"));
        assert_eq!(args(&[]).err(), Some(ErrorKind::MissingRequiredArgument));
        assert_eq!(args(&["a", "--execution-id", "b"]).err(), Some(ErrorKind::ArgumentConflict));
        assert_eq!(args(&["a", "--action", "maybe"]).err(), Some(ErrorKind::InvalidValue));
        assert_eq!(said(&["a"]), Ok(Answer::Accept { content: None }));
        assert_eq!(said(&["a", "--remember"]), Ok(Answer::Accept { content: None }));
        let refused = said(&["a", "--action", "decline", "--remember"]);
        assert_eq!(refused, Err("--remember goes with --action accept only".to_owned()));
        assert_eq!(said(&["a", "--action", "decline"]), Ok(Answer::Decline));
        assert_eq!(said(&["a", "--action", "cancel"]), Ok(Answer::Cancel));
    }

    #[test]
    fn an_approval_brings_one_thing_besides_at_most() {
        let rider = |words: &[&str]| parse_answer(&args(words).unwrap()).map(|(_, rider)| rider);
        assert_eq!(rider(&["a"]), Ok(AnswerExtras::Nothing));
        assert_eq!(rider(&["a", "--remember"]), Ok(AnswerExtras::Remember));
        let edited = Json::parse(r#"{"to":1}"#.into()).unwrap();
        assert_eq!(
            rider(&["a", "--arguments", r#"{"to":1}"#]),
            Ok(AnswerExtras::Arguments(edited))
        );
        let both = args(&["a", "--remember", "--arguments", "{}"]).err();
        assert_eq!(both, Some(ErrorKind::ArgumentConflict));
        let refused = rider(&["a", "--action", "decline", "--arguments", "{}"]);
        assert_eq!(refused, Err("--arguments goes with --action accept only".to_owned()));
    }

    #[test]
    fn content_is_an_object_given_here_or_in_a_file() {
        let object = Json::parse(r#"{"a": [1]}"#.into()).unwrap();
        let accepted = Ok(Answer::Accept { content: Some(object) });
        assert_eq!(said(&["a", "--content", r#"{"a": [1]}"#]), accepted);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answer.json");
        std::fs::write(&path, "\n{\"a\": [1]}\n").unwrap();
        let named = format!("@{}", path.display());
        assert_eq!(said(&["a", "--content", &named]), accepted);
    }

    #[test]
    fn content_that_is_no_object_is_refused_with_a_reason() {
        let cases = [
            ("@", "--content @ needs the name of a file behind it"),
            ("@/nowhere", "cannot open /nowhere: No such file or directory (os error 2)"),
            ("[1]", "--content must be a JSON object, such as {\"choice\":\"retry\"}"),
            ("{", "--content is not a JSON value: EOF while parsing an object at line 1 column 1"),
            ("-1", "--content must be a JSON object, such as {\"choice\":\"retry\"}"),
        ];
        for (given, why) in cases {
            assert_eq!(said(&["a", "--content", given]), Err(why.to_owned()), "{given}");
        }
        let endless = input::read("x.json", io::repeat(b' '), CONTENT_BYTES_MAX).unwrap_err();
        assert_eq!(endless, "x.json is longer than 2 MB");
    }
}
