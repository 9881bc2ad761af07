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
        unit_names::<names::UnitsNamesDurationCoreV1>,
        unit_names::<names::UnitsNamesDurationExtendedV1>,
        unit_names::<names::UnitsNamesDurationOutlierV1>,
        unit_names::<names::UnitsNamesLengthCoreV1>,
        unit_names::<names::UnitsNamesLengthExtendedV1>,
        unit_names::<names::UnitsNamesLengthOutlierV1>,
        unit_names::<names::UnitsNamesMassCoreV1>,
        unit_names::<names::UnitsNamesMassExtendedV1>,
        unit_names::<names::UnitsNamesMassOutlierV1>,
        unit_names::<names::UnitsNamesVolumeCoreV1>,
        unit_names::<names::UnitsNamesVolumeExtendedV1>,
        unit_names::<names::UnitsNamesVolumeOutlierV1>,
        unit_names::<names::UnitsNamesAreaCoreV1>,
        unit_names::<names::UnitsNamesAreaExtendedV1>,
        unit_names::<names::UnitsNamesAreaOutlierV1>,
    ];
    // A table that has the unit for the root only answers for every locale; another may have the language.
    let found: Vec<(UnitNames, bool)> =
        all.iter().filter_map(|of| of(locale, attributes)).collect();
    let at = found.iter().position(|(_, is_of_root)| !is_of_root).unwrap_or(0);
    let names = found.into_iter().nth(at).map(|(names, _)| names);
    names.ok_or_else(|| IntlError::missing(format!("the unit {unit}")))
}

/// The names in one table, and whether they are the root's.
fn unit_names<M>(locale: &Locale, attributes: &DataMarkerAttributes) -> Option<(UnitNames, bool)>
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
