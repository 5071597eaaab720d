//! Property sets as a part of other servants.

/// Implements the operations that a servant's interface inherits from `PropertySet` by those of a
/// [`LocalPropertySet`](crate::LocalPropertySet) in a field; with `: PropertySetDef` behind the field, those of
/// `PropertySetDef` as well.
///
/// ```
/// use spandrel_property::{LocalPropertySet, delegate_property_set};
///
/// /// The servant of a device that has properties.
/// struct Device {
///     properties: LocalPropertySet,
/// }
///
/// delegate_property_set!(Device, properties);
/// ```
#[macro_export]
macro_rules! delegate_property_set {
    ($servant:ty, $field:ident: PropertySetDef) => {
        $crate::delegate_property_set!($servant, $field);
        const _: () = {
            use $crate::spandrel::services::cos_property_service as cos;
            use $crate::spandrel::{SystemException, types};
            $crate::delegate_property_set!(@impl cos::PropertySetDefServant, $servant, $field;
                fn get_allowed_property_types(&self) -> Result<Vec<types::TypeCode>, SystemException>;
                fn get_allowed_properties(&self) -> Result<Vec<cos::PropertyDef>, SystemException>;
                fn define_property_with_mode(&self, name: &str, value: &types::Any, mode: cos::PropertyModeType)
                    -> Result<(), cos::property_set_def::DefinePropertyWithModeError>;
                fn define_properties_with_modes(&self, defs: &[cos::PropertyDef])
                    -> Result<(), cos::property_set_def::DefinePropertiesWithModesError>;
                fn get_property_mode(&self, name: &str)
                    -> Result<cos::PropertyModeType, cos::property_set_def::GetPropertyModeError>;
                fn get_property_modes(&self, names: &[String])
                    -> Result<(bool, Vec<cos::PropertyMode>), SystemException>;
                fn set_property_mode(&self, name: &str, mode: cos::PropertyModeType)
                    -> Result<(), cos::property_set_def::SetPropertyModeError>;
                fn set_property_modes(&self, modes: &[cos::PropertyMode])
                    -> Result<(), cos::property_set_def::SetPropertyModesError>;
            );
        };
    };
    ($servant:ty, $field:ident) => {
        const _: () = {
            use $crate::spandrel::services::cos_property_service as cos;
            use $crate::spandrel::{SystemException, types};
            $crate::delegate_property_set!(@impl cos::PropertySetServant, $servant, $field;
                fn define_property(&self, name: &str, value: &types::Any)
                    -> Result<(), cos::property_set::DefinePropertyError>;
                fn define_properties(&self, properties: &[cos::Property])
                    -> Result<(), cos::property_set::DefinePropertiesError>;
                fn get_number_of_properties(&self) -> Result<u32, SystemException>;
                fn get_all_property_names(&self, how_many: u32)
                    -> Result<(Vec<String>, Option<cos::PropertyNamesIterator>), SystemException>;
                fn get_property_value(&self, name: &str)
                    -> Result<types::Any, cos::property_set::GetPropertyValueError>;
                fn get_properties(&self, names: &[String]) -> Result<(bool, Vec<cos::Property>), SystemException>;
                fn get_all_properties(&self, how_many: u32)
                    -> Result<(Vec<cos::Property>, Option<cos::PropertiesIterator>), SystemException>;
                fn delete_property(&self, name: &str) -> Result<(), cos::property_set::DeletePropertyError>;
                fn delete_properties(&self, names: &[String])
                    -> Result<(), cos::property_set::DeletePropertiesError>;
                fn delete_all_properties(&self) -> Result<bool, SystemException>;
                fn is_property_defined(&self, name: &str)
                    -> Result<bool, cos::property_set::IsPropertyDefinedError>;
            );
        };
    };
    (@impl $interface:path, $servant:ty, $field:ident;
        $(fn $operation:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        impl $interface for $servant {
            $(fn $operation(&self $(, $argument: $type)*) -> $result {
                <$crate::LocalPropertySet as $interface>::$operation(&self.$field $(, $argument)*)
            })*
        }
    };
}
