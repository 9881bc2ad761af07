//! The types that an introspection tells of, and what they look like as JSON Schema.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// Wrappers around a type; `[[Int!]!]!` has five.
const WRAPPERS_MAX: usize = 12;

/// A type's name with its lists and non-nulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Named(String),
    List(Box<Self>),
    NonNull(Box<Self>),
}

impl Shape {
    fn of(value: &Value, depth: usize) -> Option<Self> {
        let inner = || Self::of(value.get("ofType")?, depth + 1).map(Box::new);
        match value.get("kind")?.as_str()? {
            _ if depth > WRAPPERS_MAX => None,
            "NON_NULL" => Some(Self::NonNull(inner()?)),
            "LIST" => Some(Self::List(inner()?)),
            _ => Some(Self::Named(name(value)?)),
        }
    }

    /// The type inside all wrappers.
    pub(crate) fn innermost(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::List(inner) | Self::NonNull(inner) => inner.innermost(),
        }
    }

    pub(crate) const fn is_required(&self) -> bool {
        matches!(self, Self::NonNull(_))
    }

    /// As GraphQL writes it: `[Int!]!`.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Named(name) => name.clone(),
            Self::List(inner) => format!("[{}]", inner.written()),
            Self::NonNull(inner) => format!("{}!", inner.written()),
        }
    }
}

/// A field or an argument.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) shape: Shape,
    pub(crate) arguments: Vec<Self>,
    pub(crate) has_default: bool,
}

impl Member {
    /// Whether a call must give it.
    pub(crate) const fn is_required(&self) -> bool {
        self.shape.is_required() && !self.has_default
    }
}

/// What a name stands for.
#[derive(Debug)]
pub(crate) enum Kind {
    Scalar,
    Enum(Vec<String>),
    Input(Vec<Member>),
    /// Objects and interfaces.
    Object(Vec<Member>),
    Union,
}

/// Every type by its name.
#[derive(Debug, Default)]
pub(crate) struct Types(HashMap<String, Kind>);

impl Types {
    /// Reads the `types` of an introspection. What cannot be read is left out.
    pub(crate) fn of(types: &[Value]) -> Self {
        Self(types.iter().filter_map(|value| Some((name(value)?, kind(value)?))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Kind> {
        self.0.get(name)
    }

    /// The fields of an object type.
    pub(crate) fn fields(&self, name: &str) -> &[Member] {
        match self.get(name) {
            Some(Kind::Object(fields)) => fields,
            Some(Kind::Scalar | Kind::Enum(_) | Kind::Input(_) | Kind::Union) | None => &[],
        }
    }

    /// Whether a value of the type has no fields to select.
    pub(crate) fn is_leaf(&self, name: &str) -> bool {
        !matches!(self.get(name), Some(Kind::Object(_) | Kind::Union))
    }

    /// Schemas of the types that others refer to.
    pub(crate) fn definitions(&self) -> BTreeMap<String, Box<str>> {
        let named = self.0.iter().filter_map(|(name, kind)| {
            let schema = match kind {
                Kind::Enum(values) => json!({ "enum": values }),
                Kind::Input(fields) => self.object(fields),
                Kind::Scalar | Kind::Object(_) | Kind::Union => return None,
            };
            Some((name.clone(), schema.to_string().into_boxed_str()))
        });
        named.collect()
    }

    /// An object with these members. Absent and `null` are the same to GraphQL where null is allowed.
    pub(crate) fn object(&self, members: &[Member]) -> Value {
        let mut properties = Map::new();
        for member in members {
            let mut schema = self.schema(&member.shape);
            if !member.description.is_empty() {
                schema["description"] = member.description.as_str().into();
            }
            properties.insert(member.name.clone(), schema);
        }
        let required: Vec<_> =
            members.iter().filter(|m| m.is_required()).map(|m| &m.name).collect();
        let mut schema =
            json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    fn schema(&self, shape: &Shape) -> Value {
        match shape {
            Shape::NonNull(inner) => self.bare(inner),
            Shape::Named(_) | Shape::List(_) => {
                let mut schema = self.bare(shape);
                match schema.get("type").and_then(Value::as_str) {
                    Some(kind) => schema["type"] = json!([kind, "null"]),
                    None if schema.get("$ref").is_some() => {
                        schema = json!({ "anyOf": [schema, { "type": "null" }] });
                    }
                    None => {}
                }
                schema
            }
        }
    }

    fn bare(&self, shape: &Shape) -> Value {
        match shape {
            Shape::NonNull(inner) => self.bare(inner),
            Shape::List(inner) => json!({ "type": "array", "items": self.schema(inner) }),
            Shape::Named(name) => match (self.get(name), name.as_str()) {
                (Some(Kind::Enum(_) | Kind::Input(_)), name) => {
                    json!({ "$ref": format!("#/$defs/{name}") })
                }
                (_, "String") => json!({ "type": "string" }),
                (_, "Int") => json!({ "type": "integer" }),
                (_, "Float") => json!({ "type": "number" }),
                (_, "Boolean") => json!({ "type": "boolean" }),
                // Servers take numbers for ids as well.
                (_, "ID") => json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
                // A scalar of its own: nobody but the server knows.
                _ => json!({}),
            },
        }
    }
}

/// A name that GraphQL allows; any other could break out of a query.
fn name(value: &Value) -> Option<String> {
    let name = value.get("name")?.as_str()?;
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins_well && name.len() <= 200 && name.chars().all(is_fine)).then(|| name.to_owned())
}

fn kind(value: &Value) -> Option<Kind> {
    Some(match value.get("kind")?.as_str()? {
        "SCALAR" => Kind::Scalar,
        "ENUM" => {
            let values = value.get("enumValues")?.as_array()?;
            Kind::Enum(values.iter().filter_map(name).collect())
        }
        "INPUT_OBJECT" => Kind::Input(members(value.get("inputFields"))),
        "OBJECT" | "INTERFACE" => Kind::Object(members(value.get("fields"))),
        "UNION" => Kind::Union,
        _ => return None,
    })
}

fn members(list: Option<&Value>) -> Vec<Member> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(member).collect()
}

fn member(value: &Value) -> Option<Member> {
    let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
    Some(Member {
        name: name(value)?,
        description: crate::openapi::cut(description, 400),
        shape: Shape::of(value.get("type")?, 0)?,
        arguments: members(value.get("args")),
        has_default: value.get("defaultValue").is_some_and(|default| !default.is_null()),
    })
}
