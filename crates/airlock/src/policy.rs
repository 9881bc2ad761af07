//! `airlock policy`: policies for tool calls, in the store itself or through the server that owns it.

mod over_http;
mod stored;

use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print, table};
use engine::policies::{PolicyOwner, RulePosition};
use lifecycle::{PolicyAction, ToolPath, ToolPattern};
use serde_json::Value;

/// Manages policies: rules about calls of tools, which apply as soon as they are added.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: PolicyVerb,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "policy";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Access, 1);

    fn run(self) -> VerbExit {
        policy(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum PolicyVerb {
    /// Adds a rule, above all others of its owner, and prints its id.
    Add {
        /// The tools: *, a path, a.b.* for a subtree, a.*.c for any one name between.
        #[arg(value_parser = pattern)]
        pattern: ToolPattern,
        /// What happens to a call of such a tool.
        #[arg(value_enum)]
        action: PolicyActionArg,
        /// The owner of the rule; a user's can tighten the organisation's rules, never loosen them.
        #[arg(long, value_name = "org|user", default_value = "org", value_parser = owner)]
        owner: PolicyOwner,
        /// With require_approval: an answer may change the arguments of the call.
        #[arg(long)]
        editable: bool,
        /// Its position among its owner's rules, compared as text; at the top if not given.
        #[arg(long, value_name = "TEXT", value_parser = position)]
        position: Option<RulePosition>,
    },
    /// Lists the rules in evaluation order: id, owner, pattern, action, position.
    List,
    /// Removes a rule.
    Remove {
        /// policy_…
        id: String,
    },
    /// Lets a rule count that a program added through a management tool while its answer came from a token that
    /// could not answer.
    Confirm {
        /// policy_…
        id: String,
    },
    /// Shows the decision for a call of a tool, and the rule that decides; exit code 1 where the tool does not exist.
    Test {
        /// Its path, such as github.org.main.getRepo.
        #[arg(value_parser = tool)]
        tool: ToolPath,
    },
}

/// The actions of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum PolicyActionArg {
    /// Runs without a question, also where the tool would ask.
    Approve,
    /// Asks a person.
    RequireApproval,
    /// Hides the tool.
    Block,
}

impl From<PolicyActionArg> for PolicyAction {
    fn from(action: PolicyActionArg) -> Self {
        match action {
            PolicyActionArg::Approve => Self::Approve,
            PolicyActionArg::RequireApproval => Self::RequireApproval,
            PolicyActionArg::Block => Self::Block,
        }
    }
}

const HELP: &str = "\
Examples:
  airlock policy add 'mail.*' require_approval
  airlock policy add 'mail.*' require_approval --editable      whoever approves may change arguments
  airlock policy add github.org.main.deleteRepo block --owner user
  airlock policy test github.org.main.deleteRepo
  airlock policy list | cut -f1,3,4
  airlock policy confirm policy_01a1…      after a look at a rule that is marked unconfirmed
  airlock policy remove policy_01a1…

A running server is asked to do it, and the rule counts at once; without one the data directory is
changed itself.";

/// What `list` notes where a rule does not count yet.
const UNCONFIRMED: &str = "a program added the rules marked unconfirmed, and no administrator has confirmed them: those that \
                           approve do not count; see airlock policy confirm";

/// Runs the verb, and prints the result.
pub(crate) fn policy(args: &Args) -> VerbExit {
    match args.reach.unowned() {
        None => args.reach.visit(async |client| {
            let told = over_http::perform_over_http(&client, &args.verb).await?;
            print_policies(args, &told);
            Ok(if is_unknown_tool(&told) { VerbExit::Failed } else { VerbExit::Good })
        }),
        Some(data_dir) => {
            print::start_tracing();
            match stored::perform_on_directory(&args.verb, &data_dir) {
                Ok(told) => {
                    print_policies(args, &told);
                    VerbExit::Good
                }
                Err(error) => {
                    print::error(&format!("{error:#}"));
                    VerbExit::Failed
                }
            }
        }
    }
}

/// Whether a test named a tool that the server does not have.
fn is_unknown_tool(told: &[Value]) -> bool {
    told.iter().any(|value| value["toolExists"] == false)
}

const fn action_word(action: PolicyAction) -> &'static str {
    match action {
        PolicyAction::Approve => "approve",
        PolicyAction::RequireApproval => "require_approval",
        PolicyAction::Block => "block",
    }
}

fn print_policies(args: &Args, told: &[Value]) {
    if matches!(args.verb, PolicyVerb::List) && !args.json {
        let rows: Vec<_> = told.iter().map(row).collect();
        return table::print(&HEAD, &rows, "There are no rules.");
    }
    for value in told {
        match args.json {
            true => print::json(value),
            false => lines(&args.verb, value).iter().for_each(|line| print::report(line)),
        }
    }
}

const HEAD: [&str; 6] = ["ID", "OWNER", "PATTERN", "ACTION", "POSITION", "NOTES"];

fn row(rule: &Value) -> [String; 6] {
    let text = |name: &str| table::cell(rule[name].as_str().unwrap_or_default());
    let notes =
        [(rule["editable"] == true, "editable"), (rule["unconfirmed"].is_object(), "unconfirmed")];
    let notes: Vec<_> = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
    [text("id"), text("owner"), text("pattern"), text("action"), text("position"), notes.join(",")]
}

/// The lines for people.
fn lines(verb: &PolicyVerb, told: &Value) -> Vec<String> {
    let text = |name: &str| told[name].as_str().map(print::tamed);
    let joined = |names: &[&str]| {
        let texts: Vec<_> = names.iter().filter_map(|name| text(name)).collect();
        vec![texts.join("\t")]
    };
    match verb {
        PolicyVerb::Add { .. } => joined(&["id"]),
        PolicyVerb::List => table::rendered(&HEAD, &[row(told)], false),
        PolicyVerb::Remove { .. } => vec![],
        PolicyVerb::Confirm { .. } => joined(&["id"]),
        PolicyVerb::Test { .. } => joined(&["verdict", "pattern", "id"]),
    }
}

fn pattern(text: &str) -> Result<ToolPattern, String> {
    ToolPattern::parse(text).map_err(|bad| bad.to_string())
}

fn owner(text: &str) -> Result<PolicyOwner, String> {
    text.parse().map_err(str::to_owned)
}

fn position(text: &str) -> Result<RulePosition, String> {
    RulePosition::parse(text).map_err(|bad| bad.to_string())
}

fn tool(text: &str) -> Result<ToolPath, String> {
    ToolPath::parse(text.trim_start_matches("tools.")).map_err(|bad| bad.to_string())
}
