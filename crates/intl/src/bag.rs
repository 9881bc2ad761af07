//! A guest's options, as texts: the prelude reads each property once, in the specified order, and converts it.

use crate::failure::IntlError;
use std::collections::BTreeMap;

/// Options by name; those that the guest left out are absent. Booleans are `true` and `false`, numbers as JavaScript writes them.
#[derive(Debug, Default)]
pub(crate) struct OptionsBag(BTreeMap<String, String>);

impl OptionsBag {
    pub(crate) fn parse(json: &str) -> Result<Self, IntlError> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let options = serde_json::from_str(json);
        options.map(Self).map_err(|_| IntlError::type_error("the options are no object of texts"))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// One of the allowed values, if the option is there.
    pub(crate) fn one_of(
        &self,
        name: &str,
        allowed: &[&'static str],
    ) -> Result<Option<&'static str>, IntlError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match allowed.iter().find(|it| **it == value) {
            Some(found) => Ok(Some(found)),
            None => Err(IntlError::option(value, name)),
        }
    }

    /// One of the allowed values; the first if the option is absent.
    pub(crate) fn choice(
        &self,
        name: &str,
        allowed: &[&'static str],
    ) -> Result<&'static str, IntlError> {
        Ok(self.one_of(name, allowed)?.unwrap_or(allowed[0]))
    }

    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value == "true")
    }

    /// A whole number between two bounds, if the option is there.
    pub(crate) fn integer(&self, name: &str, least: u8, most: u8) -> Result<Option<u8>, IntlError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let value: f64 = text.parse().unwrap_or(f64::NAN);
        if value.is_finite() && value >= f64::from(least) && value <= f64::from(most) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is between two bytes"
            )]
            return Ok(Some(value.floor() as u8));
        }
        Err(IntlError::range(format!("{name} value is out of range.")))
    }

    /// Checks the option that chooses between two algorithms of which there is one.
    pub(crate) fn check_matcher(&self) -> Result<(), IntlError> {
        self.choice("localeMatcher", &["best fit", "lookup"]).map(drop)
    }
}
