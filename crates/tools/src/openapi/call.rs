//! Converts a call into a request.

use super::body::{self, WrittenBody};
use super::plan::{BodyPlan, MediaContent, ParameterCarrier, PlanParameter, RequestPlan, holes};
use super::server::{self, ServerChoiceArgument};
use super::style::{in_header, in_path, in_query};
use crate::files::is_file;
use crate::http::{ApiRequest, RequestReach, media_type};
use crate::{PlacementKind, ToolCredential};
use hyper::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

/// Longest URL: servers refuse longer ones, most of them sooner.
const URL_BYTES_MAX: usize = 32 << 10;

/// What a request needs besides the plan and the arguments.
pub(crate) struct RequestContext<'s> {
    /// Where the description was found.
    pub(crate) source: Option<&'s Url>,
    /// The base URL that the operator configured.
    pub(crate) base: Option<&'s Url>,
    pub(crate) credential: &'s ToolCredential,
}

/// Builds the request of a call, or reports what is wrong with its arguments.
pub(crate) fn request(
    plan: &RequestPlan,
    args: &Value,
    setting: &RequestContext<'_>,
) -> Result<ApiRequest, String> {
    let base = base(plan, args, setting)?;
    let url = url(plan, args, &base, setting.credential)?;
    let mut outgoing = ApiRequest::new(plan.method.clone(), url);
    outgoing.reach = reach(&base, setting);
    outgoing.headers = headers(plan, args)?;
    if let Some(written) = plan.body.as_ref().map(|body| written(body, args)).transpose()?.flatten()
    {
        let label =
            HeaderValue::from_str(&written.label).map_err(|_| "the type of its body is odd")?;
        outgoing.headers.insert(CONTENT_TYPE, label);
        outgoing.body = written.bytes.into();
    }
    Ok(outgoing)
}

fn base(plan: &RequestPlan, args: &Value, setting: &RequestContext<'_>) -> Result<Url, String> {
    if let Some(base) = setting.base {
        return Ok(base.clone());
    }
    let is_parameter = plan.parameters.iter().any(|parameter| parameter.name == "server");
    let argument = args.get("server").filter(|_| !is_parameter);
    let has_credential = !setting.credential.is_none();
    server::base(
        &plan.servers,
        &ServerChoiceArgument::from_argument(argument),
        setting.source,
        has_credential,
    )
}

/// A description may use its own origin. Beyond it, the reach is that of the description's own address.
fn reach(base: &Url, setting: &RequestContext<'_>) -> RequestReach {
    match setting.source {
        _ if setting.base.is_some() => RequestReach::Anywhere,
        Some(source) if source.origin() != base.origin() => RequestReach::granted_to(source),
        Some(_) | None => RequestReach::Anywhere,
    }
}

fn url(
    plan: &RequestPlan,
    args: &Value,
    base: &Url,
    credential: &ToolCredential,
) -> Result<Url, String> {
    let template = plan.path.split('#').next().unwrap_or_default();
    let (path, fixed) = template.split_once('?').unwrap_or((template, ""));
    let path = format!("{}{}", base.path().trim_end_matches('/'), filled(path, plan, args)?);
    let mut url = base.clone();
    url.set_path(&path);
    let mut pairs: Vec<String> = vec![];
    pairs.extend(base.query().filter(|query| !query.is_empty()).map(str::to_owned));
    pairs.extend((!fixed.is_empty()).then(|| fixed.to_owned()));
    let is_ours =
        |name: &str| credential.value_at(PlacementKind::Query).any(|(own, _)| own == name);
    for (parameter, value) in
        values(plan, args, ParameterCarrier::Query).filter(|(p, _)| !is_ours(&p.name))
    {
        let found = in_query(&parameter.name, value, parameter.manner);
        pairs.extend(found.into_iter().map(|(name, value)| format!("{name}={value}")));
    }
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    url.set_fragment(None);
    if url.as_str().len() > URL_BYTES_MAX {
        return Err(format!("the address would have more than {URL_BYTES_MAX} bytes"));
    }
    Ok(url)
}

/// The first parameter of the path that the arguments lack, in Executor's sentence.
pub(crate) fn missing_in_path(plan: &RequestPlan, args: &Value) -> Option<String> {
    let path = plan.path.split(['#', '?']).next().unwrap_or_default();
    let is_missing = |name: &&str| {
        let is_it = |p: &&PlanParameter| p.carrier == ParameterCarrier::Path && p.name == *name;
        plan.parameters.iter().find(is_it).is_none_or(|p| find(args, p).is_none())
    };
    holes(path).into_iter().find(is_missing).map(missing_path_parameter)
}

fn missing_path_parameter(name: &str) -> String {
    format!("Missing required path parameter: {name}")
}

/// The path with its parameters filled in. No value can lead to another path.
fn filled(path: &str, plan: &RequestPlan, args: &Value) -> Result<String, String> {
    let mut filled = path.to_owned();
    for name in holes(path) {
        let is_it = |p: &&PlanParameter| p.carrier == ParameterCarrier::Path && p.name == name;
        let parameter = plan.parameters.iter().find(is_it);
        let found = parameter.and_then(|p| Some((p, find(args, p)?)));
        let (parameter, value) = found.ok_or_else(|| missing_path_parameter(name))?;
        let text = in_path(name, value, parameter.manner);
        if text.is_empty() {
            return Err(format!("{name} is empty, and the path would be another one"));
        }
        filled =
            filled.replace(&format!("{{{name}}}"), &text).replace(&format!("{{+{name}}}"), &text);
    }
    let is_step = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    if filled.split(['/', '\\']).any(is_step) && !path.split('/').any(is_step) {
        return Err("a value in the path is a step to another path".into());
    }
    Ok(if filled.starts_with('/') { filled } else { format!("/{filled}") })
}

fn headers(plan: &RequestPlan, args: &Value) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let accept = match &plan.accept {
        Some(label) => format!("{label}, */*;q=0.8"),
        None => "application/json, */*;q=0.8".to_owned(),
    };
    headers.extend(HeaderValue::from_str(&accept).ok().map(|accept| (ACCEPT, accept)));
    for (parameter, value) in values(plan, args, ParameterCarrier::Header) {
        let odd = |_| format!("{} cannot be sent in a header", parameter.name);
        let name: HeaderName = parameter.name.parse().map_err(|_| odd(()))?;
        let text = in_header(value, parameter.manner);
        headers.insert(name, HeaderValue::from_str(&text).map_err(|_| odd(()))?);
    }
    let cookies = values(plan, args, ParameterCarrier::Cookie)
        .flat_map(|(parameter, value)| in_query(&parameter.name, value, parameter.manner))
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join("; ");
    if !cookies.is_empty() {
        let value = HeaderValue::from_str(&cookies).map_err(|_| "its cookies cannot be sent")?;
        headers.insert(COOKIE, value);
    }
    Ok(headers)
}

fn values<'p>(
    plan: &'p RequestPlan,
    args: &'p Value,
    carrier: ParameterCarrier,
) -> impl Iterator<Item = (&'p PlanParameter, &'p Value)> {
    let here = plan.parameters.iter().filter(move |parameter| parameter.carrier == carrier);
    here.filter_map(|parameter| Some((parameter, find(args, parameter)?)))
}

/// Moves values from the name of their location, such as `query`, to the top level; whether there were any.
pub(crate) fn flattened(plan: &RequestPlan, args: &mut Value) -> bool {
    let Value::Object(args) = args else { return false };
    let mut has_moved = false;
    let is_declared = |name: &str| plan.parameters.iter().any(|parameter| parameter.name == name);
    for parameter in &plan.parameters {
        let containers = parameter.carrier.containers().iter().filter(|name| !is_declared(name));
        for container in containers {
            let Some(Value::Object(members)) = args.get_mut(*container) else { continue };
            let value = members.remove(&parameter.name);
            if members.is_empty() {
                args.remove(*container);
                has_moved = true;
            }
            if let Some(value) = value {
                args.entry(&parameter.name).or_insert(value);
                has_moved = true;
            }
        }
    }
    has_moved
}

/// A value by its name, or below the name of its location.
fn find<'v>(args: &'v Value, parameter: &PlanParameter) -> Option<&'v Value> {
    let nested = parameter
        .carrier
        .containers()
        .iter()
        .find_map(|container| args.get(container)?.as_object()?.get(&parameter.name));
    args.get(&parameter.name).or(nested).filter(|value| !value.is_null())
}

fn written(body: &BodyPlan, args: &Value) -> Result<Option<WrittenBody>, String> {
    let wanted = args.get("contentType").and_then(Value::as_str);
    let bytes = args.get("bodyBase64").and_then(Value::as_str);
    let value = args.get("body");
    let default = match (wanted, bytes) {
        (Some(label), _) => body.contents.iter().find(|content| content.label == label),
        (None, Some(_)) => bytes_content(body),
        (None, None) => value.and_then(|value| file_content(body, value)),
    };
    let content = default.or(body.contents.first()).ok_or("no media type fits its body")?;
    if let Some(text) = bytes {
        let bytes = body::from_base64(text).map_err(|why| format!("bodyBase64: {why}"))?;
        return Ok(Some(WrittenBody { label: content.label.clone(), bytes }));
    }
    value.map(|value| body::write(content, value)).transpose()
}

fn bytes_content(body: &BodyPlan) -> Option<&MediaContent> {
    body.contents.iter().find(|content| content.label.contains("octet-stream"))
}

/// The media type for a file if the program chose none: the file's own, a matching wildcard, or one for any bytes.
fn file_content<'b>(body: &'b BodyPlan, file: &Value) -> Option<&'b MediaContent> {
    let own = file.get("mimeType").and_then(Value::as_str).filter(|_| is_file(file))?;
    let own = media_type(own);
    let is_own = |content: &&MediaContent| media_type(&content.label) == own;
    let covers_own = |content: &&MediaContent| {
        let label = media_type(&content.label);
        label.strip_suffix('*').is_some_and(|start| own.starts_with(start) || start == "*/")
    };
    let contents = || body.contents.iter();
    contents().find(is_own).or_else(|| contents().find(covers_own)).or_else(|| bytes_content(body))
}
