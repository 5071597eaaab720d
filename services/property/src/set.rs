//! A property set: the operations of `PropertySet` and `PropertySetDef`.

use std::mem;
use std::ops::Bound;

use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::services::cos_property_service::{
    ExceptionReason, MultipleExceptionsError, PropertiesIterator, Property, PropertyDef, PropertyMode,
    PropertyModeType, PropertyNamesIterator, PropertySetDefServant, PropertySetServant, property_set, property_set_def,
};
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, SystemException};
use spandrel_daemon::require_at_most;

use crate::edit::{Edit, require_name};
use crate::iterators::{PropertyIterators, Source, bounded};
use crate::journal::{Journal, SharedStore};
use crate::limits::Limits;
use crate::refusal::{Failures, Refusal, whole_request};
use crate::state::SetState;
use crate::table::{Constraints, Entry, Table, property, void};

/// A property set in this process, for servants whose interface derives from `PropertySet` or `PropertySetDef`, and as a
/// servant itself. Clones are the same set.
///
/// ```
/// use spandrel::services::cos_property_service::{PropertySet, PropertySetServant, PropertySetSkeleton};
/// use spandrel::types::Any;
/// use spandrel::{Endpoint, Orb, Poa};
/// use spandrel_property::{LocalPropertySet, PropertyIterators};
///
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let root = Poa::root(&orb)?;
/// root.the_poa_manager().activate()?;
/// let iterators = PropertyIterators::new(&root, Default::default())?;
///
/// let properties = LocalPropertySet::new(&iterators, Default::default());
/// properties.define_property("frames", &Any::new(&25_u16)?)?;
/// let object = root.activate(PropertySetSkeleton::new(properties))?;
/// let remote: PropertySet = object.narrow()?;
/// assert_eq!(remote.get_property_value("frames")?.extract::<u16>()?, 25);
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocalPropertySet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    constraints: Constraints,
    limits: Limits,
    state: Arc<Mutex<SetState>>,
    /// Held for reading while a change is made, and for writing while it is made anew after a conflict.
    changing: RwLock<()>,
    /// The disk, for a persistent set.
    journal: Option<Journal>,
    iterators: Arc<PropertyIterators>,
    /// The octets of all sets of the service, and their bound.
    budget: Option<(Arc<Budget>, usize)>,
}

/// The octets that the sets of a service have together. Less than nothing while changes that conflict both shrink a set.
#[derive(Debug, Default)]
pub(crate) struct Budget(Mutex<isize>);

impl Budget {
    /// Replaces a number of octets by another.
    ///
    /// # Errors
    /// IMP_LIMIT if all sets would have more octets than the bound, and have more than before.
    pub(crate) fn charge(&self, before: usize, after: usize, bound: usize) -> Result<(), SystemException> {
        let mut used = self.0.lock();
        let sum = (*used + after.cast_signed()) - before.cast_signed();
        if after > before {
            require_at_most(usize::try_from(sum).unwrap_or(0), bound, "octets in all sets")?;
        }
        *used = sum;
        Ok(())
    }

    pub(crate) fn release(&self, octets: usize) {
        *self.0.lock() -= octets.cast_signed();
    }

    pub(crate) fn used(&self) -> usize {
        usize::try_from(*self.0.lock()).unwrap_or(0)
    }
}

impl LocalPropertySet {
    /// Creates an empty set without constraints, in memory. `iterators` serves the iterators over it.
    #[must_use]
    pub fn new(iterators: &Arc<PropertyIterators>, limits: Limits) -> Self {
        Self::with(iterators, limits, Constraints::default(), Table::default(), None)
    }

    pub(crate) fn with(
        iterators: &Arc<PropertyIterators>,
        limits: Limits,
        constraints: Constraints,
        table: Table,
        stored: Option<(&Arc<SharedStore>, u64)>,
    ) -> Self {
        let state = Arc::new(Mutex::new(SetState::new(table)));
        let journal = stored.map(|(store, number)| Journal {
            store: Arc::clone(store),
            number,
            state: Arc::clone(&state),
            limits,
        });
        let (iterators, changing) = (Arc::clone(iterators), RwLock::new(()));
        Self(Arc::new(Shared { constraints, limits, state, changing, journal, iterators, budget: None }))
    }

    /// The same set, which counts for a budget with this bound. Its present octets were charged before.
    pub(crate) fn budgeted(self, budget: &Arc<Budget>, bound: usize) -> Self {
        let shared = Arc::into_inner(self.0).expect("the set has no other user yet");
        Self(Arc::new(Shared { budget: Some((Arc::clone(budget), bound)), ..shared }))
    }

    /// Takes the properties of a set that has no other user.
    pub(crate) fn into_table(self) -> Table {
        mem::take(&mut self.0.state.lock().table)
    }

    /// Defines properties with their modes.
    pub(crate) fn define_initial(&self, defs: &[PropertyDef]) -> Result<(), MultipleExceptionsError> {
        self.change_each(
            defs,
            |def| &def.property_name,
            |edit, def| edit.define(&def.property_name, &def.property_value, Some(def.property_mode)),
        )
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0) as Arc<dyn Source>
    }

    /// Reads a property by its name.
    fn read<T>(&self, name: &str, of_entry: impl FnOnce(&Entry) -> T) -> Result<T, Refusal> {
        let state = self.0.state.lock();
        let entry = state.table.entries.get(require_name(name)?);
        Ok(of_entry(entry.ok_or(ExceptionReason::PropertyNotFound)?))
    }

    /// Makes changes, which are durable before this returns if the set is persistent. `work` is called again after a
    /// conflict with a change of another thread.
    fn change<T>(&self, work: impl Fn(&mut Edit<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        {
            let _shared = self.0.changing.read();
            if let Some(outcome) = self.try_change(&work)? {
                return Ok(outcome);
            }
        }
        // No other thread changes the set meanwhile, so that there is no further conflict.
        let _exclusive = self.0.changing.write();
        self.try_change(&work)?.ok_or_else(|| SystemException::transient(0, CompletionStatus::No).into())
    }

    /// Makes changes. `None` after a conflict: nothing is changed.
    fn try_change<T>(&self, work: impl Fn(&mut Edit<'_>) -> Result<T, Refusal>) -> Result<Option<T>, Refusal> {
        let mut state = self.0.state.lock();
        let mut edit = Edit::new(&state, &self.0.constraints, &self.0.limits);
        let outcome = work(&mut edit)?;
        let change = edit.into_change();
        if change.changes.is_empty() {
            return Ok(Some(outcome));
        }
        let (before, after) = change.octets;
        if let Some((budget, bound)) = &self.0.budget {
            budget.charge(before, after, *bound)?;
        }
        let Some(journal) = &self.0.journal else {
            state.apply(change.changes);
            return Ok(Some(outcome));
        };
        drop(state);
        let committed = journal.commit(change);
        if let (Ok(false) | Err(_), Some((budget, _))) = (&committed, &self.0.budget) {
            _ = budget.charge(after, before, usize::MAX);
        }
        let is_made = committed.map_err(SystemException::from)?;
        Ok(is_made.then_some(outcome))
    }

    /// Makes one change for each item of a request.
    fn change_each<I>(
        &self,
        items: &[I],
        name: impl Fn(&I) -> &str,
        work: impl Fn(&mut Edit<'_>, &I) -> Result<(), Refusal>,
    ) -> Result<(), MultipleExceptionsError> {
        // Each is compared with the constraints of the set.
        require_at_most(items.len(), self.0.limits.properties, "properties in a request")?;
        let failures = self.change(|edit| {
            let mut failures = Failures::default();
            for item in items {
                let outcome = work(edit, item);
                failures.add(name(item), outcome)?;
            }
            Ok(failures)
        });
        failures.map_err(whole_request)?.result()
    }
}

impl Source for Shared {
    fn after(&self, name: Option<&str>, how_many: usize) -> Vec<(String, Any)> {
        let start = name.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state.lock();
        let entries = state.table.entries.range::<str, _>((start, Bound::Unbounded));
        entries.take(how_many).map(|(name, entry)| (name.clone(), entry.value.clone())).collect()
    }
}

impl PropertySetServant for LocalPropertySet {
    fn define_property(&self, name: &str, value: &Any) -> Result<(), property_set::DefinePropertyError> {
        Ok(self.change(|edit| edit.define(name, value, None))?)
    }

    fn define_properties(&self, properties: &[Property]) -> Result<(), property_set::DefinePropertiesError> {
        self.change_each(
            properties,
            |property| &property.property_name,
            |edit, property| edit.define(&property.property_name, &property.property_value, None),
        )
    }

    fn get_number_of_properties(&self) -> Result<u32, SystemException> {
        Ok(u32::try_from(self.0.state.lock().table.entries.len()).unwrap_or(u32::MAX))
    }

    fn get_all_property_names(
        &self,
        how_many: u32,
    ) -> Result<(Vec<String>, Option<PropertyNamesIterator>), SystemException> {
        let how_many = bounded(how_many);
        let mut names: Vec<String> = self.0.after(None, how_many + 1).into_iter().map(|(name, _)| name).collect();
        let has_more = names.len() > how_many;
        names.truncate(how_many);
        let rest = if has_more { Some(self.0.iterators.over_names(self.source(), names.last())?) } else { None };
        Ok((names, rest))
    }

    fn get_property_value(&self, name: &str) -> Result<Any, property_set::GetPropertyValueError> {
        Ok(self.read(name, |entry| entry.value.clone())?)
    }

    fn get_properties(&self, names: &[String]) -> Result<(bool, Vec<Property>), SystemException> {
        let void = void()?;
        let mut is_complete = true;
        let properties = names.iter().map(|name| {
            let value = self.read(name, |entry| entry.value.clone());
            is_complete &= value.is_ok();
            Property { property_name: name.clone(), property_value: value.unwrap_or_else(|_| void.clone()) }
        });
        let properties = properties.collect();
        Ok((is_complete, properties))
    }

    fn get_all_properties(
        &self,
        how_many: u32,
    ) -> Result<(Vec<Property>, Option<PropertiesIterator>), SystemException> {
        let how_many = bounded(how_many);
        let mut properties = self.0.after(None, how_many + 1);
        let has_more = properties.len() > how_many;
        properties.truncate(how_many);
        let last = properties.last().map(|(name, _)| name);
        let rest = if has_more { Some(self.0.iterators.over_properties(self.source(), last)?) } else { None };
        Ok((properties.into_iter().map(property).collect(), rest))
    }

    fn delete_property(&self, name: &str) -> Result<(), property_set::DeletePropertyError> {
        Ok(self.change(|edit| edit.delete(name))?)
    }

    fn delete_properties(&self, names: &[String]) -> Result<(), property_set::DeletePropertiesError> {
        self.change_each(names, |name| name, |edit, name| edit.delete(name))
    }

    fn delete_all_properties(&self) -> Result<bool, SystemException> {
        self.change(|edit| edit.delete_all()).map_err(whole_request)
    }

    fn is_property_defined(&self, name: &str) -> Result<bool, property_set::IsPropertyDefinedError> {
        Ok(self.0.state.lock().table.entries.contains_key(require_name(name)?))
    }
}

impl PropertySetDefServant for LocalPropertySet {
    fn get_allowed_property_types(&self) -> Result<Vec<TypeCode>, SystemException> {
        Ok(self.0.constraints.types.clone())
    }

    fn get_allowed_properties(&self) -> Result<Vec<PropertyDef>, SystemException> {
        Ok(self.0.constraints.properties.clone())
    }

    fn define_property_with_mode(
        &self,
        name: &str,
        value: &Any,
        mode: PropertyModeType,
    ) -> Result<(), property_set_def::DefinePropertyWithModeError> {
        Ok(self.change(|edit| edit.define(name, value, Some(mode)))?)
    }

    fn define_properties_with_modes(
        &self,
        defs: &[PropertyDef],
    ) -> Result<(), property_set_def::DefinePropertiesWithModesError> {
        self.define_initial(defs)
    }

    fn get_property_mode(&self, name: &str) -> Result<PropertyModeType, property_set_def::GetPropertyModeError> {
        Ok(self.read(name, |entry| entry.mode)?)
    }

    fn get_property_modes(&self, names: &[String]) -> Result<(bool, Vec<PropertyMode>), SystemException> {
        let modes = names.iter().map(|name| PropertyMode {
            property_name: name.clone(),
            property_mode: self.read(name, |entry| entry.mode).unwrap_or(PropertyModeType::Undefined),
        });
        let modes: Vec<_> = modes.collect();
        Ok((modes.iter().all(|mode| mode.property_mode != PropertyModeType::Undefined), modes))
    }

    fn set_property_mode(
        &self,
        name: &str,
        mode: PropertyModeType,
    ) -> Result<(), property_set_def::SetPropertyModeError> {
        Ok(self.change(|edit| edit.set_mode(name, mode))?)
    }

    fn set_property_modes(&self, modes: &[PropertyMode]) -> Result<(), property_set_def::SetPropertyModesError> {
        self.change_each(
            modes,
            |mode| &mode.property_name,
            |edit, mode| edit.set_mode(&mode.property_name, mode.property_mode),
        )
    }
}
