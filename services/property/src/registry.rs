//! The sets of a service, and the factories that create them.

use std::collections::{BTreeMap, HashMap};

use spandrel::net::sync::{Arc, Mutex};
use spandrel::poa::ObjectId;
use spandrel::server::Servant;
use spandrel::services::cos_property_service::{
    Property, PropertyDef, PropertyModeType, PropertySet, PropertySetDef, PropertySetDefFactoryServant,
    PropertySetDefSkeleton, PropertySetFactoryServant, PropertySetSkeleton, property_set_def_factory,
    property_set_factory,
};
use spandrel::types::TypeCode;
use spandrel::{ObjectRef, Poa, SystemException};
use spandrel_daemon::{caller, require_at_most};

use crate::iterators::PropertyIterators;
use crate::journal::SharedStore;
use crate::limits::ServiceLimits;
use crate::set::{Budget, LocalPropertySet};
use crate::store::{SetRecord, StoredSet};
use crate::table::{Constraints, Table};

/// All sets of a service. Each is an active object of the adapter.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) adapter: Poa,
    pub(crate) iterators: Arc<PropertyIterators>,
    pub(crate) limits: ServiceLimits,
    /// `None` for sets in memory.
    pub(crate) store: Option<Arc<SharedStore>>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) counts: Mutex<Counts>,
}

/// The numbers of sets.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sets: usize,
    /// By the address of the peer that created them.
    by_owner: HashMap<String, usize>,
    /// The number of the next set.
    next: u64,
}

impl Counts {
    /// No sets; the first has this number.
    pub(crate) fn starting_at(next: u64) -> Self {
        Self { next, ..Self::default() }
    }
}

impl Registry {
    /// Activates the sets of a store.
    pub(crate) fn restore(&self, sets: Vec<StoredSet>) -> Result<(), SystemException> {
        for StoredSet { number, record, table } in sets {
            let mut counts = self.counts.lock();
            counts.sets += 1;
            *counts.by_owner.entry(record.owner.clone()).or_default() += 1;
            drop(counts);
            self.budget.charge(0, table.octets, usize::MAX)?;
            self.activate(number, record, table)?;
        }
        Ok(())
    }

    /// The number of sets.
    pub(crate) fn sets(&self) -> usize {
        self.counts.lock().sets
    }

    /// Creates a set with these properties, each with its mode or none.
    fn create<E: From<SystemException>>(
        &self,
        has_modes: bool,
        constraints: Constraints,
        define: impl FnOnce(&LocalPropertySet) -> Result<(), E>,
    ) -> Result<ObjectRef, E> {
        let owner = caller().unwrap_or_default();
        let number = self.reserve(&owner)?;
        let record = SetRecord { has_modes, owner: owner.clone(), constraints };
        let created = self.create_numbered(number, record, define);
        if created.is_err() {
            let mut counts = self.counts.lock();
            counts.sets -= 1;
            if let Some(count) = counts.by_owner.get_mut(&owner) {
                *count -= 1;
            }
        }
        created
    }

    fn create_numbered<E: From<SystemException>>(
        &self,
        number: u64,
        record: SetRecord,
        define: impl FnOnce(&LocalPropertySet) -> Result<(), E>,
    ) -> Result<ObjectRef, E> {
        // The set is filled before it has a record and a budget.
        let (constraints, limits) = (record.constraints.clone(), self.limits.set);
        let table = Table::new(&constraints, BTreeMap::new());
        let draft = LocalPropertySet::with(&self.iterators, limits, constraints, table, None);
        define(&draft)?;
        let table = draft.into_table();
        let octets = table.octets;
        self.budget.charge(0, octets, self.limits.octets)?;
        let created = self.write(number, &record, &table).and_then(|()| self.activate(number, record, table));
        if created.is_err() {
            self.budget.release(octets);
        }
        Ok(created?)
    }

    fn write(&self, number: u64, record: &SetRecord, table: &Table) -> Result<(), SystemException> {
        let Some(store) = &self.store else { return Ok(()) };
        // After an uncertain write, a set that is in the file has no reference.
        Ok(store.create(number, record, table)?)
    }

    /// Counts a new set, and returns its number.
    fn reserve(&self, owner: &str) -> Result<u64, SystemException> {
        let mut counts = self.counts.lock();
        require_at_most(counts.sets + 1, self.limits.sets, "property sets")?;
        let of_owner = counts.by_owner.get(owner).copied().unwrap_or(0);
        require_at_most(of_owner + 1, self.limits.sets_of_client, "property sets of one client")?;
        counts.sets += 1;
        counts.by_owner.insert(owner.to_owned(), of_owner + 1);
        counts.next += 1;
        Ok(counts.next - 1)
    }

    /// Activates a set, and returns its reference.
    fn activate(&self, number: u64, record: SetRecord, table: Table) -> Result<ObjectRef, SystemException> {
        let stored = self.store.as_ref().map(|store| (store, number));
        let set = LocalPropertySet::with(&self.iterators, self.limits.set, record.constraints, table, stored)
            .budgeted(&self.budget, self.limits.octets);
        let servant: Arc<dyn Servant> = match record.has_modes {
            true => Arc::new(PropertySetDefSkeleton::new(set)),
            false => Arc::new(PropertySetSkeleton::new(set)),
        };
        let id = ObjectId::from(number.to_string().as_str());
        self.adapter.activate_object_with_id(&id, servant)?;
        Ok(self.adapter.id_to_reference(&id)?)
    }
}

/// The servant of `PropertySetFactory`.
#[derive(Debug)]
pub(crate) struct SetFactory(pub(crate) Arc<Registry>);

impl PropertySetFactoryServant for SetFactory {
    fn create_propertyset(&self) -> Result<Option<PropertySet>, SystemException> {
        let set = self.0.create::<SystemException>(false, Constraints::default(), |_| Ok(()))?;
        Ok(Some(set.unchecked_narrow()))
    }

    fn create_constrained_propertyset(
        &self,
        types: &[TypeCode],
        properties: &[Property],
    ) -> Result<Option<PropertySet>, property_set_factory::CreateConstrainedPropertysetError> {
        let defs = properties.iter().map(|property| def(property, PropertyModeType::FixedNormal)).collect();
        let constraints = Constraints::new(types, defs, &self.0.limits.set)?;
        let set = self.0.create::<SystemException>(false, constraints, |_| Ok(()))?;
        Ok(Some(set.unchecked_narrow()))
    }

    fn create_initial_propertyset(
        &self,
        properties: &[Property],
    ) -> Result<Option<PropertySet>, property_set_factory::CreateInitialPropertysetError> {
        let defs: Vec<_> = properties.iter().map(|property| def(property, PropertyModeType::Normal)).collect();
        let set = self.0.create(false, Constraints::default(), |set| set.define_initial(&defs))?;
        Ok(Some(set.unchecked_narrow()))
    }
}

/// The servant of `PropertySetDefFactory`.
#[derive(Debug)]
pub(crate) struct SetDefFactory(pub(crate) Arc<Registry>);

impl PropertySetDefFactoryServant for SetDefFactory {
    fn create_propertysetdef(&self) -> Result<Option<PropertySetDef>, SystemException> {
        let set = self.0.create::<SystemException>(true, Constraints::default(), |_| Ok(()))?;
        Ok(Some(set.unchecked_narrow()))
    }

    fn create_constrained_propertysetdef(
        &self,
        types: &[TypeCode],
        defs: &[PropertyDef],
    ) -> Result<Option<PropertySetDef>, property_set_def_factory::CreateConstrainedPropertysetdefError> {
        let constraints = Constraints::new(types, defs.to_vec(), &self.0.limits.set)?;
        let set = self.0.create::<SystemException>(true, constraints, |_| Ok(()))?;
        Ok(Some(set.unchecked_narrow()))
    }

    fn create_initial_propertysetdef(
        &self,
        defs: &[PropertyDef],
    ) -> Result<Option<PropertySetDef>, property_set_def_factory::CreateInitialPropertysetdefError> {
        let set = self.0.create(true, Constraints::default(), |set| set.define_initial(defs))?;
        Ok(Some(set.unchecked_narrow()))
    }
}

fn def(property: &Property, property_mode: PropertyModeType) -> PropertyDef {
    let Property { property_name, property_value } = property.clone();
    PropertyDef { property_name, property_value, property_mode }
}
