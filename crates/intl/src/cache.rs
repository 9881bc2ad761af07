//! The formatters that were used last: building one takes longer than using it once, and sorting uses one many times.
//! A formatter is a function of its settings, so a hit cannot be observed.

use crate::failure::IntlError;
use std::cell::RefCell;
use std::rc::Rc;

/// Most formatters of one kind that are remembered. A program rarely uses more at a time.
const FORMATTERS_MAX: usize = 4;

/// Longest settings that are cached.
const SETTINGS_BYTES_MAX: usize = 2_000;

pub(crate) struct FormatterCache<T>(RefCell<Vec<(String, Rc<T>)>>);

impl<T> FormatterCache<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// The formatter with these settings, built if it is not remembered.
    pub(crate) fn get(
        &self,
        settings: &str,
        build: impl FnOnce(&str) -> Result<T, IntlError>,
    ) -> Result<Rc<T>, IntlError> {
        let known =
            self.0.borrow().iter().find(|(key, _)| key == settings).map(|(_, it)| Rc::clone(it));
        if let Some(known) = known {
            return Ok(known);
        }
        let built = Rc::new(build(settings)?);
        if settings.len() <= SETTINGS_BYTES_MAX {
            let mut formatters = self.0.borrow_mut();
            if formatters.len() >= FORMATTERS_MAX {
                formatters.remove(0);
            }
            formatters.push((settings.to_owned(), Rc::clone(&built)));
        }
        Ok(built)
    }
}

/// Settings that we made, read back. A guest cannot change them, so this fails only if the prelude is wrong.
pub(crate) fn read_settings<T: serde::de::DeserializeOwned>(
    settings: &str,
) -> Result<T, IntlError> {
    serde_json::from_str(settings)
        .map_err(|_| IntlError::type_error("these are no settings of Intl"))
}

/// What a `new:…` request returns: settings for later requests, and what `resolvedOptions` shows.
pub(crate) fn created(settings: &impl serde::Serialize, shown: &serde_json::Value) -> String {
    format!("{}\n{shown}", crate::parts::to_json(settings))
}
