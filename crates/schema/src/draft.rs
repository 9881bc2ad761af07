//! The dialects of JSON Schema, and which keyword each of them knows.

/// A dialect. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SchemaDraft {
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

impl SchemaDraft {
    /// The dialect that `$schema` names, if it is one of the standard ones.
    pub(crate) fn from_uri(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let rest = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"))?;
        match rest {
            "json-schema.org/draft-04/schema" => Some(Self::Four),
            "json-schema.org/draft-06/schema" => Some(Self::Six),
            "json-schema.org/draft-07/schema" => Some(Self::Seven),
            "json-schema.org/draft/2019-09/schema" => Some(Self::Of2019),
            "json-schema.org/draft/2020-12/schema" => Some(Self::Of2020),
            _ => None,
        }
    }

    /// The member that names a schema.
    pub(crate) fn id_keyword(self) -> &'static str {
        if self == Self::Four { "id" } else { "$id" }
    }

    /// Whether keywords beside a reference are ignored.
    pub(crate) fn refs_stand_alone(self) -> bool {
        self <= Self::Seven
    }

    /// Whether the dialect gives `keyword` a meaning. A schema may use any name for its own ends.
    pub(crate) fn knows(self, keyword: &str) -> bool {
        match keyword {
            "const" | "contains" | "propertyNames" => self >= Self::Six,
            "if" | "then" | "else" => self >= Self::Seven,
            "$anchor"
            | "dependentRequired"
            | "dependentSchemas"
            | "maxContains"
            | "minContains"
            | "unevaluatedItems"
            | "unevaluatedProperties" => self >= Self::Of2019,
            "$recursiveAnchor" | "$recursiveRef" => self == Self::Of2019,
            "$dynamicAnchor" | "$dynamicRef" | "prefixItems" => self >= Self::Of2020,
            "additionalItems" => self <= Self::Of2019,
            _ => true,
        }
    }
}
