//! The names of units: ICU4X has them by category, and each category in three tables.

use crate::failure::IntlError;
use icu_experimental::dimension::provider::units::categorized_display_names as names;
use icu_experimental::dimension::provider::units::display_names::UnitsDisplayNames;
use icu_experimental::provider::Baked;
use icu_locale::Locale;
use icu_provider::marker::{DataMarkerExt as _, ErasedMarker};
use icu_provider::prelude::*;

type UnitNames = DataPayload<ErasedMarker<UnitsDisplayNames<'static>>>;

pub(crate) fn load(locale: &Locale, unit: &str, width: &str) -> Result<UnitNames, IntlError> {
    let attributes = format!("{width}-{unit}");
    let attributes =
        DataMarkerAttributes::try_from_str(&attributes).map_err(|_| IntlError::no_data(unit))?;
    let all = [
        of::<names::UnitsNamesDurationCoreV1>,
        of::<names::UnitsNamesDurationExtendedV1>,
        of::<names::UnitsNamesDurationOutlierV1>,
        of::<names::UnitsNamesLengthCoreV1>,
        of::<names::UnitsNamesLengthExtendedV1>,
        of::<names::UnitsNamesLengthOutlierV1>,
        of::<names::UnitsNamesMassCoreV1>,
        of::<names::UnitsNamesMassExtendedV1>,
        of::<names::UnitsNamesMassOutlierV1>,
        of::<names::UnitsNamesVolumeCoreV1>,
        of::<names::UnitsNamesVolumeExtendedV1>,
        of::<names::UnitsNamesVolumeOutlierV1>,
        of::<names::UnitsNamesAreaCoreV1>,
        of::<names::UnitsNamesAreaExtendedV1>,
        of::<names::UnitsNamesAreaOutlierV1>,
    ];
    // A table that has the unit for the root only answers for every locale; another may have the language.
    let found: Vec<(UnitNames, bool)> =
        all.iter().filter_map(|of| of(locale, attributes)).collect();
    let at = found.iter().position(|(_, is_of_root)| !is_of_root).unwrap_or(0);
    let names = found.into_iter().nth(at).map(|(names, _)| names);
    names.ok_or_else(|| IntlError::missing(format!("the unit {unit}")))
}

/// The names in one table, and whether they are the root's.
fn of<M>(locale: &Locale, attributes: &DataMarkerAttributes) -> Option<(UnitNames, bool)>
where
    M: DataMarker<DataStruct = UnitsDisplayNames<'static>>,
    Baked: DataProvider<M>,
{
    let data = M::make_locale(locale.into());
    let id = DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, &data);
    let mut metadata = DataRequestMetadata::default();
    metadata.silent = true;
    let response: DataResponse<M> = Baked.load(DataRequest { id, metadata }).ok()?;
    let is_of_root = response.metadata.locale.is_some_and(|it| it.is_unknown());
    Some((response.payload.cast(), is_of_root))
}
