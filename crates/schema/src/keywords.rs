//! Reads the keywords of one schema into rules.

use crate::compile::{Compiler, Rigour};
use crate::compiled::Formats;
use crate::draft::Draft;
use crate::formats::Format;
use crate::node::{Enumeration, Members, Node, NodeId, Rule, Unevaluated};
use crate::pattern::Pattern;
use crate::shape::{self, Misshape, Shaped};
use serde_json::{Map, Value};

/// The schema that is being read.
struct Reading<'a> {
    members: &'a Map<String, Value>,
    resource: usize,
    draft: Draft,
}

impl<'a> Reading<'a> {
    /// A keyword, if the schema has it and its dialect knows it.
    fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.members.get(keyword).filter(|_| self.draft.knows(keyword))
    }

    /// A keyword as `shape` reads it.
    fn read<T>(
        &self,
        keyword: &str,
        shape: fn(&'a Value) -> Shaped<T>,
    ) -> Result<Option<T>, Misshape> {
        self.get(keyword).map(shape).transpose().map_err(misshape(keyword))
    }
}

fn misshape(keyword: &str) -> impl FnOnce(String) -> Misshape {
    move |what| Misshape { keyword: Some(keyword.to_owned()), what }
}

impl<'a> Compiler<'a> {
    /// The node of a schema that is an object, in the resource `resource`.
    pub(crate) fn read(
        &mut self,
        members: &'a Map<String, Value>,
        resource: usize,
    ) -> Result<Node, Misshape> {
        let draft = self.index.resources[resource].draft;
        let schema = Reading { members, resource, draft };
        let mut rules = vec![];
        if draft.refs_stand_alone() && members.contains_key("$ref") {
            self.reference(&schema, &mut rules)?;
            return Ok(Node { rules, unevaluated: None, resource, is_target: false });
        }
        remarks(&schema)?;
        plain(&schema, &mut rules)?;
        numeric(&schema, &mut rules)?;
        counts(&schema, &mut rules)?;
        self.texts(&schema, &mut rules)?;
        self.object(&schema, &mut rules)?;
        self.dependent(&schema, &mut rules)?;
        self.array(&schema, &mut rules)?;
        self.branches(&schema, &mut rules)?;
        self.reference(&schema, &mut rules)?;
        let properties = self.child(&schema, "unevaluatedProperties");
        let items = self.child(&schema, "unevaluatedItems");
        let has_unevaluated = properties.is_some() || items.is_some();
        let unevaluated = has_unevaluated.then_some(Unevaluated { properties, items });
        Ok(Node { rules, unevaluated, resource, is_target: false })
    }

    fn child(&mut self, schema: &Reading<'a>, keyword: &str) -> Option<NodeId> {
        schema.get(keyword).map(|inner| self.node_of(inner, schema.resource))
    }

    fn children(
        &mut self,
        schema: &Reading<'a>,
        keyword: &str,
    ) -> Result<Option<Vec<NodeId>>, Misshape> {
        let inner = schema.read(keyword, shape::schemas)?;
        Ok(inner
            .map(|inner| inner.iter().map(|inner| self.node_of(inner, schema.resource)).collect()))
    }

    fn texts(&mut self, schema: &Reading<'a>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
        if let Some(source) = schema.read("pattern", shape::text)?
            && let Some(pattern) = self.pattern(source).map_err(misshape("pattern"))?
        {
            rules.push(Rule::Pattern(Box::new(pattern)));
        }
        let format = schema.read("format", shape::text)?.and_then(Format::named);
        if self.formats == Formats::Checked {
            rules.extend(format.map(Rule::Format));
        }
        Ok(())
    }

    /// A pattern, where it is going to be used: compiling one takes time.
    fn pattern(&self, source: &str) -> Shaped<Option<Pattern>> {
        match self.rigour {
            Rigour::Full => {
                let wrong = |what| format!("is no pattern: {what}");
                Pattern::new(source).map(Some).map_err(wrong)
            }
            Rigour::Shape => Ok(None),
        }
    }

    fn object(&mut self, schema: &Reading<'a>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
        let mut members = Members::default();
        if let Some(required) = schema.read("required", shape::texts)? {
            members.required = required;
        }
        if let Some(named) = schema.read("properties", shape::object)? {
            let node = |(name, inner): (&String, &'a Value)| {
                (name.clone(), self.node_of(inner, schema.resource))
            };
            members.named = named.iter().map(node).collect();
        }
        let keyword = "patternProperties";
        for (source, inner) in schema.read(keyword, shape::object)?.into_iter().flatten() {
            let node = self.node_of(inner, schema.resource);
            let pattern = self.pattern(source).map_err(misshape(keyword))?;
            members.patterned.extend(pattern.map(|pattern| (pattern, node)));
        }
        members.additional = self.child(schema, "additionalProperties");
        let keywords = ["required", "properties", "patternProperties", "additionalProperties"];
        if keywords.iter().any(|keyword| schema.get(keyword).is_some()) {
            rules.push(Rule::Members(Box::new(members)));
        }
        rules.extend(self.child(schema, "propertyNames").map(Rule::PropertyNames));
        Ok(())
    }

    fn dependent(&mut self, schema: &Reading<'a>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
        let (mut required, mut schemas) = (vec![], vec![]);
        for (name, names) in schema.read("dependentRequired", shape::object)?.into_iter().flatten()
        {
            let names = shape::texts(names).map_err(misshape("dependentRequired"))?;
            required.push((name.clone(), names));
        }
        for (name, inner) in schema.read("dependentSchemas", shape::object)?.into_iter().flatten() {
            schemas.push((name.clone(), self.node_of(inner, schema.resource)));
        }
        // Both in one, as the earlier drafts have it; accepted in all.
        for (name, inner) in schema.read("dependencies", shape::object)?.into_iter().flatten() {
            if inner.is_array() {
                let names = shape::texts(inner).map_err(misshape("dependencies"))?;
                required.push((name.clone(), names));
            } else {
                schemas.push((name.clone(), self.node_of(inner, schema.resource)));
            }
        }
        if !required.is_empty() {
            rules.push(Rule::DependentRequired(required));
        }
        if !schemas.is_empty() {
            rules.push(Rule::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn array(&mut self, schema: &Reading<'a>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
        let items = schema.get("items");
        let (prefix, rest) = match items {
            Some(Value::Array(tuple)) if schema.draft <= Draft::Of2019 => {
                let prefix = tuple.iter().map(|inner| self.node_of(inner, schema.resource));
                (prefix.collect(), self.child(schema, "additionalItems"))
            }
            Some(Value::Array(_)) => {
                let what = "must be a schema: an array of them is called prefixItems".to_owned();
                return Err(misshape("items")(what));
            }
            Some(_) | None => {
                let prefix = self.children(schema, "prefixItems")?.unwrap_or_default();
                (prefix, self.child(schema, "items"))
            }
        };
        if !prefix.is_empty() || rest.is_some() {
            rules.push(Rule::Items { prefix, rest });
        }
        let least = schema.read("minContains", shape::count)?;
        let most = schema.read("maxContains", shape::count)?;
        if let Some(item) = self.child(schema, "contains") {
            let is_evaluation = schema.draft >= Draft::Of2020;
            rules.push(Rule::Contains { item, least: least.unwrap_or(1), most, is_evaluation });
        }
        Ok(())
    }

    fn branches(&mut self, schema: &Reading<'a>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
        rules.extend(self.children(schema, "allOf")?.map(Rule::AllOf));
        rules.extend(self.children(schema, "anyOf")?.map(Rule::AnyOf));
        rules.extend(self.children(schema, "oneOf")?.map(Rule::OneOf));
        rules.extend(self.child(schema, "not").map(Rule::Not));
        let then = self.child(schema, "then");
        let otherwise = self.child(schema, "else");
        if let Some(condition) = self.child(schema, "if") {
            rules.push(Rule::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn reference(&mut self, schema: &Reading<'a>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
        if let Some(reference) = schema.read("$ref", shape::text)? {
            let rule = self.target(schema, reference).map_err(misshape("$ref"))?;
            rules.extend(rule.map(|(rule, _)| rule));
        }
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            let Some(reference) = schema.read(keyword, shape::text)? else { continue };
            let target = self.target(schema, reference).map_err(misshape(keyword))?;
            let (Some((Rule::Ref(named), home)), anchor) =
                (target, reference.split_once('#').map_or("", |(_, anchor)| anchor))
            else {
                continue;
            };
            rules.push(self.dynamic(named, home, anchor, keyword));
        }
        Ok(())
    }

    /// The rule that a reference makes, and the resource it leads to.
    fn target(&mut self, schema: &Reading<'a>, reference: &str) -> Shaped<Option<(Rule, usize)>> {
        if self.rigour == Rigour::Shape {
            return Ok(None);
        }
        if let Some(home) = self.index.look_up(schema.resource, reference) {
            let target = self.node_of(home.schema, home.resource);
            self.targets.push(target);
            return Ok(Some((Rule::Ref(target), home.resource)));
        }
        let absolute = self.index.absolute(schema.resource, reference);
        match Draft::of(&absolute.resource) {
            Some(draft) if absolute.fragment.is_empty() => {
                Ok(Some((Rule::Metaschema(draft), schema.resource)))
            }
            Some(_) | None => Err(format!("refers to {reference}, which is not in the schema")),
        }
    }

    /// A reference that is dynamic only if what it names is an anchor of that kind.
    fn dynamic(&mut self, named: NodeId, home: usize, anchor: &str, keyword: &str) -> Rule {
        let anchor = if keyword == "$recursiveRef" { "" } else { anchor };
        let is_anchor = self.index.resources[home]
            .dynamic_anchors
            .get(anchor)
            .is_some_and(|schema| self.number_of(schema) == Some(named));
        if !is_anchor {
            return Rule::Ref(named);
        }
        let resources = self.index.resources.iter().enumerate();
        let targets: Vec<_> = resources
            .filter_map(|(resource, held)| Some((resource, *held.dynamic_anchors.get(anchor)?)))
            .collect();
        let node = |(resource, schema)| (resource, self.node_of(schema, resource));
        let targets: Vec<_> = targets.into_iter().map(node).collect();
        self.targets.extend(targets.iter().map(|(_, target)| *target));
        Rule::DynamicRef { named, targets }
    }
}

/// What demands nothing of a value but must have its shape.
fn remarks(schema: &Reading<'_>) -> Result<(), Misshape> {
    for keyword in ["$schema", schema.draft.id_keyword(), "$anchor", "$dynamicAnchor"] {
        schema.read(keyword, shape::text)?;
    }
    schema.read("$recursiveAnchor", shape::truth)?;
    for keyword in ["$defs", "definitions"] {
        schema.read(keyword, shape::object)?;
    }
    Ok(())
}

fn plain(schema: &Reading<'_>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
    let is_one_point_zero_whole = schema.draft > Draft::Four;
    let types = schema.read("type", shape::types)?;
    rules.extend(types.map(|types| Rule::Type { types, is_one_point_zero_whole }));
    rules.extend(schema.get("const").cloned().map(Rule::Const));
    let options = schema.read("enum", shape::array)?;
    rules.extend(options.map(|options| Rule::Enum(Enumeration::new(options))));
    Ok(())
}

fn numeric(schema: &Reading<'_>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
    let minimum = schema.read("minimum", shape::number)?;
    let maximum = schema.read("maximum", shape::number)?;
    // In draft 4, `true` beside a limit leaves the limit itself out.
    let leaves_out =
        |keyword| schema.draft == Draft::Four && schema.get(keyword) == Some(&Value::Bool(true));
    rules.extend(minimum.map(match leaves_out("exclusiveMinimum") {
        true => Rule::ExclusiveMinimum,
        false => Rule::Minimum,
    }));
    rules.extend(maximum.map(match leaves_out("exclusiveMaximum") {
        true => Rule::ExclusiveMaximum,
        false => Rule::Maximum,
    }));
    let is_flag =
        |keyword| schema.draft == Draft::Four && schema.get(keyword).is_some_and(Value::is_boolean);
    if !is_flag("exclusiveMinimum") {
        rules.extend(schema.read("exclusiveMinimum", shape::number)?.map(Rule::ExclusiveMinimum));
    }
    if !is_flag("exclusiveMaximum") {
        rules.extend(schema.read("exclusiveMaximum", shape::number)?.map(Rule::ExclusiveMaximum));
    }
    rules.extend(schema.read("multipleOf", shape::divisor)?.map(Rule::MultipleOf));
    Ok(())
}

fn counts(schema: &Reading<'_>, rules: &mut Vec<Rule>) -> Result<(), Misshape> {
    type Limit = fn(u64) -> Rule;
    let limits: [(&str, Limit); 6] = [
        ("minLength", Rule::MinLength),
        ("maxLength", Rule::MaxLength),
        ("minItems", Rule::MinItems),
        ("maxItems", Rule::MaxItems),
        ("minProperties", Rule::MinProperties),
        ("maxProperties", Rule::MaxProperties),
    ];
    for (keyword, rule) in limits {
        rules.extend(schema.read(keyword, shape::count)?.map(rule));
    }
    if schema.read("uniqueItems", shape::truth)? == Some(true) {
        rules.push(Rule::UniqueItems);
    }
    Ok(())
}
