//! The types of an introspection, and their JSON Schemas.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// Wrappers around a type; `[[Int!]!]!` has five.
const WRAPPERS_MAX: usize = 12;

/// A type's name with its lists and non-nulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypeShape {
    Named(String),
    List(Box<Self>),
    NonNull(Box<Self>),
}

impl TypeShape {
    fn from_value(value: &Value, depth: usize) -> Option<Self> {
        let inner = || Self::from_value(value.get("ofType")?, depth + 1).map(Box::new);
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
pub(crate) struct GraphqlMember {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) shape: TypeShape,
    pub(crate) arguments: Vec<Self>,
    pub(crate) has_default: bool,
}

impl GraphqlMember {
    /// Whether a call must give it.
    pub(crate) const fn is_required(&self) -> bool {
        self.shape.is_required() && !self.has_default
    }
}

/// The definition of a named type.
#[derive(Debug)]
pub(crate) enum GraphqlTypeKind {
    Scalar,
    Enum(Vec<String>),
    Input(Vec<GraphqlMember>),
    /// Objects and interfaces.
    Object(Vec<GraphqlMember>),
    Union,
}

/// Every type by its name.
#[derive(Debug, Default)]
pub(crate) struct GraphqlTypes(HashMap<String, GraphqlTypeKind>);

impl GraphqlTypes {
    /// Reads the `types` of an introspection. What cannot be read is left out.
    pub(crate) fn from_types(types: &[Value]) -> Self {
        Self(types.iter().filter_map(|value| Some((name(value)?, kind(value)?))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&GraphqlTypeKind> {
        self.0.get(name)
    }

    /// The fields of an object type.
    pub(crate) fn fields(&self, name: &str) -> &[GraphqlMember] {
        match self.get(name) {
            Some(GraphqlTypeKind::Object(fields)) => fields,
            Some(
                GraphqlTypeKind::Scalar
                | GraphqlTypeKind::Enum(_)
                | GraphqlTypeKind::Input(_)
                | GraphqlTypeKind::Union,
            )
            | None => &[],
        }
    }

    /// Whether a value of the type has no fields to select.
    pub(crate) fn is_leaf(&self, name: &str) -> bool {
        !matches!(self.get(name), Some(GraphqlTypeKind::Object(_) | GraphqlTypeKind::Union))
    }

    /// Schemas of the types that others refer to.
    pub(crate) fn definitions(&self) -> BTreeMap<String, Box<str>> {
        let named = self.0.iter().filter_map(|(name, kind)| {
            let schema = match kind {
                GraphqlTypeKind::Enum(values) => json!({ "enum": values }),
                GraphqlTypeKind::Input(fields) => self.object(fields),
                GraphqlTypeKind::Scalar | GraphqlTypeKind::Object(_) | GraphqlTypeKind::Union => {
                    return None;
                }
            };
            Some((name.clone(), schema.to_string().into_boxed_str()))
        });
        named.collect()
    }

    /// An object with these members. Absent and `null` are the same to GraphQL where null is allowed.
    pub(crate) fn object(&self, members: &[GraphqlMember]) -> Value {
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

    fn schema(&self, shape: &TypeShape) -> Value {
        match shape {
            TypeShape::NonNull(inner) => self.bare(inner),
            TypeShape::Named(_) | TypeShape::List(_) => {
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

    fn bare(&self, shape: &TypeShape) -> Value {
        match shape {
            TypeShape::NonNull(inner) => self.bare(inner),
            TypeShape::List(inner) => json!({ "type": "array", "items": self.schema(inner) }),
            TypeShape::Named(name) => match (self.get(name), name.as_str()) {
                (Some(GraphqlTypeKind::Enum(_) | GraphqlTypeKind::Input(_)), name) => {
                    json!({ "$ref": format!("#/$defs/{name}") })
                }
                (_, "String") => json!({ "type": "string" }),
                (_, "Int") => json!({ "type": "integer" }),
                (_, "Float") => json!({ "type": "number" }),
                (_, "Boolean") => json!({ "type": "boolean" }),
                // Servers take numbers for ids as well.
                (_, "ID") => json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
                // A custom scalar: only the server knows its format.
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

fn kind(value: &Value) -> Option<GraphqlTypeKind> {
    Some(match value.get("kind")?.as_str()? {
        "SCALAR" => GraphqlTypeKind::Scalar,
        "ENUM" => {
            let values = value.get("enumValues")?.as_array()?;
            GraphqlTypeKind::Enum(values.iter().filter_map(name).collect())
        }
        "INPUT_OBJECT" => GraphqlTypeKind::Input(members(value.get("inputFields"))),
        "OBJECT" | "INTERFACE" => GraphqlTypeKind::Object(members(value.get("fields"))),
        "UNION" => GraphqlTypeKind::Union,
        _ => return None,
    })
}

fn members(list: Option<&Value>) -> Vec<GraphqlMember> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(member).collect()
}

fn member(value: &Value) -> Option<GraphqlMember> {
    let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
    Some(GraphqlMember {
        name: name(value)?,
        description: crate::openapi::cut(description, 400),
        shape: TypeShape::from_value(value.get("type")?, 0)?,
        arguments: members(value.get("args")),
        has_default: value.get("defaultValue").is_some_and(|default| !default.is_null()),
    })
}
