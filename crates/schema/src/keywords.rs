//! Reads the keywords of one schema into rules.

use crate::compile::{CompileRigour, SchemaCompiler};
use crate::compiled::FormatMode;
use crate::draft::SchemaDraft;
use crate::formats::KnownFormat;
use crate::node::{EnumOptions, MemberRules, NodeId, SchemaNode, SchemaRule, UnevaluatedRule};
use crate::pattern::CompiledPattern;
use crate::shape::{self, KeywordDefect, ShapeResult};
use serde_json::{Map, Value};

/// The schema that is being read.
struct KeywordReader<'a> {
    members: &'a Map<String, Value>,
    resource: usize,
    draft: SchemaDraft,
}

impl<'a> KeywordReader<'a> {
    /// A keyword, if the schema has it and its dialect knows it.
    fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.members.get(keyword).filter(|_| self.draft.knows(keyword))
    }

    /// A keyword as `shape` reads it.
    fn read<T>(
        &self,
        keyword: &str,
        shape: fn(&'a Value) -> ShapeResult<T>,
    ) -> Result<Option<T>, KeywordDefect> {
        self.get(keyword).map(shape).transpose().map_err(misshape(keyword))
    }
}

fn misshape(keyword: &str) -> impl FnOnce(String) -> KeywordDefect {
    move |what| KeywordDefect { keyword: Some(keyword.to_owned()), what }
}

impl<'a> SchemaCompiler<'a> {
    /// The node of a schema that is an object, in the resource `resource`.
    pub(crate) fn read(
        &mut self,
        members: &'a Map<String, Value>,
        resource: usize,
    ) -> Result<SchemaNode, KeywordDefect> {
        let draft = self.index.resources[resource].draft;
        let schema = KeywordReader { members, resource, draft };
        let mut rules = vec![];
        if draft.refs_stand_alone() && members.contains_key("$ref") {
            self.reference(&schema, &mut rules)?;
            return Ok(SchemaNode { rules, unevaluated: None, resource, is_target: false });
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
        let unevaluated = has_unevaluated.then_some(UnevaluatedRule { properties, items });
        Ok(SchemaNode { rules, unevaluated, resource, is_target: false })
    }

    fn child(&mut self, schema: &KeywordReader<'a>, keyword: &str) -> Option<NodeId> {
        schema.get(keyword).map(|inner| self.node_of(inner, schema.resource))
    }

    fn children(
        &mut self,
        schema: &KeywordReader<'a>,
        keyword: &str,
    ) -> Result<Option<Vec<NodeId>>, KeywordDefect> {
        let inner = schema.read(keyword, shape::schemas)?;
        Ok(inner
            .map(|inner| inner.iter().map(|inner| self.node_of(inner, schema.resource)).collect()))
    }

    fn texts(
        &mut self,
        schema: &KeywordReader<'a>,
        rules: &mut Vec<SchemaRule>,
    ) -> Result<(), KeywordDefect> {
        if let Some(source) = schema.read("pattern", shape::string_shape)?
            && let Some(pattern) = self.pattern(source).map_err(misshape("pattern"))?
        {
            rules.push(SchemaRule::Pattern(Box::new(pattern)));
        }
        let format = schema.read("format", shape::string_shape)?.and_then(KnownFormat::from_name);
        if self.formats == FormatMode::Checked {
            rules.extend(format.map(SchemaRule::Format));
        }
        Ok(())
    }

    /// A pattern, compiled only if it will be used: compilation takes time.
    fn pattern(&self, source: &str) -> ShapeResult<Option<CompiledPattern>> {
        match self.rigour {
            CompileRigour::Full => {
                let wrong = |what| format!("is no pattern: {what}");
                CompiledPattern::new(source).map(Some).map_err(wrong)
            }
            CompileRigour::Shape => Ok(None),
        }
    }

    fn object(
        &mut self,
        schema: &KeywordReader<'a>,
        rules: &mut Vec<SchemaRule>,
    ) -> Result<(), KeywordDefect> {
        let mut members = MemberRules::default();
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
            rules.push(SchemaRule::Members(Box::new(members)));
        }
        rules.extend(self.child(schema, "propertyNames").map(SchemaRule::PropertyNames));
        Ok(())
    }

    fn dependent(
        &mut self,
        schema: &KeywordReader<'a>,
        rules: &mut Vec<SchemaRule>,
    ) -> Result<(), KeywordDefect> {
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
            rules.push(SchemaRule::DependentRequired(required));
        }
        if !schemas.is_empty() {
            rules.push(SchemaRule::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn array(
        &mut self,
        schema: &KeywordReader<'a>,
        rules: &mut Vec<SchemaRule>,
    ) -> Result<(), KeywordDefect> {
        let items = schema.get("items");
        let (prefix, rest) = match items {
            Some(Value::Array(tuple)) if schema.draft <= SchemaDraft::Of2019 => {
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
            rules.push(SchemaRule::Items { prefix, rest });
        }
        let least = schema.read("minContains", shape::count)?;
        let most = schema.read("maxContains", shape::count)?;
        if let Some(item) = self.child(schema, "contains") {
            let is_evaluation = schema.draft >= SchemaDraft::Of2020;
            rules.push(SchemaRule::Contains {
                item,
                least: least.unwrap_or(1),
                most,
                is_evaluation,
            });
        }
        Ok(())
    }

    fn branches(
        &mut self,
        schema: &KeywordReader<'a>,
        rules: &mut Vec<SchemaRule>,
    ) -> Result<(), KeywordDefect> {
        rules.extend(self.children(schema, "allOf")?.map(SchemaRule::AllOf));
        rules.extend(self.children(schema, "anyOf")?.map(SchemaRule::AnyOf));
        rules.extend(self.children(schema, "oneOf")?.map(SchemaRule::OneOf));
        rules.extend(self.child(schema, "not").map(SchemaRule::Not));
        let then = self.child(schema, "then");
        let otherwise = self.child(schema, "else");
        if let Some(condition) = self.child(schema, "if") {
            rules.push(SchemaRule::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn reference(
        &mut self,
        schema: &KeywordReader<'a>,
        rules: &mut Vec<SchemaRule>,
    ) -> Result<(), KeywordDefect> {
        if let Some(reference) = schema.read("$ref", shape::string_shape)? {
            let rule = self.target(schema, reference).map_err(misshape("$ref"))?;
            rules.extend(rule.map(|(rule, _)| rule));
        }
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            let Some(reference) = schema.read(keyword, shape::string_shape)? else { continue };
            let target = self.target(schema, reference).map_err(misshape(keyword))?;
            let (Some((SchemaRule::Ref(named), home)), anchor) =
                (target, reference.split_once('#').map_or("", |(_, anchor)| anchor))
            else {
                continue;
            };
            rules.push(self.dynamic(named, home, anchor, keyword));
        }
        Ok(())
    }

    /// The rule that a reference makes, and the resource it leads to.
    fn target(
        &mut self,
        schema: &KeywordReader<'a>,
        reference: &str,
    ) -> ShapeResult<Option<(SchemaRule, usize)>> {
        if self.rigour == CompileRigour::Shape {
            return Ok(None);
        }
        if let Some(home) = self.index.look_up(schema.resource, reference) {
            let target = self.node_of(home.schema, home.resource);
            self.targets.push(target);
            return Ok(Some((SchemaRule::Ref(target), home.resource)));
        }
        let absolute = self.index.absolute(schema.resource, reference);
        match SchemaDraft::from_uri(&absolute.resource) {
            Some(draft) if absolute.fragment.is_empty() => {
                Ok(Some((SchemaRule::Metaschema(draft), schema.resource)))
            }
            Some(_) | None => Err(format!("refers to {reference}, which is not in the schema")),
        }
    }

    /// A reference that is dynamic only if what it names is an anchor of that kind.
    fn dynamic(&mut self, named: NodeId, home: usize, anchor: &str, keyword: &str) -> SchemaRule {
        let anchor = if keyword == "$recursiveRef" { "" } else { anchor };
        let is_anchor = self.index.resources[home]
            .dynamic_anchors
            .get(anchor)
            .is_some_and(|schema| self.number_of(schema) == Some(named));
        if !is_anchor {
            return SchemaRule::Ref(named);
        }
        let resources = self.index.resources.iter().enumerate();
        let targets: Vec<_> = resources
            .filter_map(|(resource, held)| Some((resource, *held.dynamic_anchors.get(anchor)?)))
            .collect();
        let node = |(resource, schema)| (resource, self.node_of(schema, resource));
        let targets: Vec<_> = targets.into_iter().map(node).collect();
        self.targets.extend(targets.iter().map(|(_, target)| *target));
        SchemaRule::DynamicRef { named, targets }
    }
}

/// What demands nothing of a value but must have its shape.
fn remarks(schema: &KeywordReader<'_>) -> Result<(), KeywordDefect> {
    for keyword in ["$schema", schema.draft.id_keyword(), "$anchor", "$dynamicAnchor"] {
        schema.read(keyword, shape::string_shape)?;
    }
    schema.read("$recursiveAnchor", shape::truth)?;
    for keyword in ["$defs", "definitions"] {
        schema.read(keyword, shape::object)?;
    }
    Ok(())
}

fn plain(schema: &KeywordReader<'_>, rules: &mut Vec<SchemaRule>) -> Result<(), KeywordDefect> {
    let is_one_point_zero_whole = schema.draft > SchemaDraft::Four;
    let types = schema.read("type", shape::types)?;
    rules.extend(types.map(|types| SchemaRule::Type { types, is_one_point_zero_whole }));
    rules.extend(schema.get("const").cloned().map(SchemaRule::Const));
    let options = schema.read("enum", shape::array)?;
    rules.extend(options.map(|options| SchemaRule::Enum(EnumOptions::new(options))));
    Ok(())
}

fn numeric(schema: &KeywordReader<'_>, rules: &mut Vec<SchemaRule>) -> Result<(), KeywordDefect> {
    let minimum = schema.read("minimum", shape::number)?;
    let maximum = schema.read("maximum", shape::number)?;
    // In draft 4, `true` beside a limit leaves the limit itself out.
    let leaves_out = |keyword| {
        schema.draft == SchemaDraft::Four && schema.get(keyword) == Some(&Value::Bool(true))
    };
    rules.extend(minimum.map(match leaves_out("exclusiveMinimum") {
        true => SchemaRule::ExclusiveMinimum,
        false => SchemaRule::Minimum,
    }));
    rules.extend(maximum.map(match leaves_out("exclusiveMaximum") {
        true => SchemaRule::ExclusiveMaximum,
        false => SchemaRule::Maximum,
    }));
    let is_flag = |keyword| {
        schema.draft == SchemaDraft::Four && schema.get(keyword).is_some_and(Value::is_boolean)
    };
    if !is_flag("exclusiveMinimum") {
        rules.extend(
            schema.read("exclusiveMinimum", shape::number)?.map(SchemaRule::ExclusiveMinimum),
        );
    }
    if !is_flag("exclusiveMaximum") {
        rules.extend(
            schema.read("exclusiveMaximum", shape::number)?.map(SchemaRule::ExclusiveMaximum),
        );
    }
    rules.extend(schema.read("multipleOf", shape::divisor)?.map(SchemaRule::MultipleOf));
    Ok(())
}

fn counts(schema: &KeywordReader<'_>, rules: &mut Vec<SchemaRule>) -> Result<(), KeywordDefect> {
    type Limit = fn(u64) -> SchemaRule;
    let limits: [(&str, Limit); 6] = [
        ("minLength", SchemaRule::MinLength),
        ("maxLength", SchemaRule::MaxLength),
        ("minItems", SchemaRule::MinItems),
        ("maxItems", SchemaRule::MaxItems),
        ("minProperties", SchemaRule::MinProperties),
        ("maxProperties", SchemaRule::MaxProperties),
    ];
    for (keyword, rule) in limits {
        rules.extend(schema.read(keyword, shape::count)?.map(rule));
    }
    if schema.read("uniqueItems", shape::truth)? == Some(true) {
        rules.push(SchemaRule::UniqueItems);
    }
    Ok(())
}
