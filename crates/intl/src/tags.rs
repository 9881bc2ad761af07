//! Lists of names: numbering systems, units, and what `Intl.supportedValuesOf` shows of them.

use crate::dates::zones;
use crate::failure::{IntlError, quoted};
use crate::parts::to_json;

/// Numbering systems of ten digits (ECMA-402, table of simple digit mappings).
pub(crate) const NUMBERING_SYSTEMS: &[&str] = &[
    "adlm", "ahom", "arab", "arabext", "bali", "beng", "bhks", "brah", "cakm", "cham", "deva",
    "diak", "fullwide", "gong", "gonm", "gujr", "guru", "hmng", "hmnp", "java", "kali", "khmr",
    "knda", "lana", "lanatham", "laoo", "latn", "lepc", "limb", "mlym", "modi", "mong", "mroo",
    "mtei", "mymr", "mymrshan", "newa", "nkoo", "olck", "orya", "osma", "rohg", "saur", "shrd",
    "sind", "sora", "sund", "takr", "talu", "tamldec", "telu", "thai", "tibt", "tirh", "vaii",
    "wara", "wcho",
];

/// Numbering systems of the same table that ICU4X has no digits of.
const MISSING_NUMBERING_SYSTEMS: &[&str] = &[
    "gara", "gukh", "hanidec", "kawi", "krai", "mathbold", "mathdbl", "mathmono", "mathsanb",
    "mathsans", "mymrepka", "mymrpao", "mymrtlng", "nagm", "onao", "outlined", "segment", "sinh",
    "sunu", "tnsa", "tols",
];

pub(crate) fn is_missing_numbering_system(name: &str) -> bool {
    MISSING_NUMBERING_SYSTEMS.binary_search(&name).is_ok()
}

pub(crate) fn is_numbering_system(name: &str) -> bool {
    NUMBERING_SYSTEMS.binary_search(&name).is_ok()
}

/// Units of ECMA-402 that ICU4X has names of.
pub(crate) const UNITS: &[&str] = &[
    "acre",
    "centimeter",
    "day",
    "fluid-ounce",
    "foot",
    "gallon",
    "gram",
    "hectare",
    "hour",
    "inch",
    "kilogram",
    "kilometer",
    "liter",
    "meter",
    "microsecond",
    "mile",
    "mile-scandinavian",
    "milliliter",
    "millimeter",
    "millisecond",
    "minute",
    "month",
    "nanosecond",
    "ounce",
    "pound",
    "second",
    "stone",
    "week",
    "yard",
    "year",
];

/// Units of ECMA-402 that it has not.
pub(crate) const MISSING_UNITS: &[&str] = &[
    "bit",
    "byte",
    "celsius",
    "degree",
    "fahrenheit",
    "gigabit",
    "gigabyte",
    "kilobit",
    "kilobyte",
    "megabit",
    "megabyte",
    "percent",
    "petabyte",
    "terabit",
    "terabyte",
];

pub(crate) fn supported_values(key: &str) -> Result<String, IntlError> {
    match key {
        "calendar" => Ok(to_json(&["gregory"])),
        "numberingSystem" => Ok(to_json(&NUMBERING_SYSTEMS)),
        "timeZone" => Ok(to_json(&zones::names())),
        "unit" => Ok(to_json(&UNITS)),
        "collation" | "currency" => Err(IntlError::missing(format!("a list of every {key}"))),
        _ => Err(IntlError::range(format!("Invalid key : {}", quoted(key)))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_sorted_and_no_unit_is_in_both_lists() {
        assert!(super::NUMBERING_SYSTEMS.is_sorted());
        assert!(super::UNITS.is_sorted() && super::MISSING_UNITS.is_sorted());
        assert!(super::UNITS.iter().all(|unit| !super::MISSING_UNITS.contains(unit)));
    }
}
