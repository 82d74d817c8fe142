//! The policies of a device that looks at content. Each is a room of its own: it keeps what it needs, and answers the
//! same few questions (`Policy`). It never acts on the device: the core asks, decides and acts (`content`).
//!
//! | folder | policy |
//! |---|---|
//! | [`dedup`] | one page for each distinct value (CA-SSD) |
//! | [`delta`] | values in fewer bytes than a page: deltas (DeltaFTL), and compressed by themselves |
//! | [`history`] | old versions, and the way back to them (BVSSD) |
//! | [`out_of_line`] | pages that are hashed in idle time (CAFTL) |
//! | [`prefetch`] | index entries restored from flash |
//! | [`decision`] | the answer to a write |
//!
//! The list of them stands once, at the end of this file. One more is its folder and a line there.

pub mod decision;
pub mod dedup;
pub mod delta;
pub mod history;
pub mod out_of_line;
pub mod prefetch;
#[cfg(test)]
mod witness;

use flashlore_content::{Content, Dedup};
use flashlore_flash::{Lpn, ObjectId, Owned, Owner, Ppn};

use self::delta::Delta;
use self::history::Versions;
use self::out_of_line::Scan;
use self::prefetch::Prefetch;
#[cfg(test)]
use self::witness::Witness;
use crate::mapping::objects::Objects;

/// Why a write is not hashed when it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unhashed {
    /// Hashing is off: switched off for a while, or not wanted while the device is prepared.
    Off,
    /// The page that was hashed as a sample for this one was not found.
    Unsampled,
    /// The content equals nothing that is ever written: it is not looked at later either.
    Foreign,
}

/// A write that has been decided, and stored if it had to be: what the page will refer to next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    /// The logical page.
    pub lpn: Lpn,
    /// The object that it comes to refer to, or refers to already.
    pub object: ObjectId,
    /// How it was found or stored.
    pub how: How,
}

/// How a write found its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It was stored before.
    Found,
    /// It was programmed, or packed, as a new object.
    New {
        /// Why it was not hashed, if it was not.
        unhashed: Option<Unhashed>,
        /// Another object with its fingerprint, whose entry in the index it takes over.
        taken: Option<ObjectId>,
    },
}

/// What a policy is asked. Every question has the answer of a policy that does not care.
pub(crate) trait Policy<C: Content> {
    /// On write: it has been decided, and the map is about to change.
    #[inline(always)]
    fn on_write(&mut self, _objects: &mut Objects<C>, _served: &Served) {}

    /// On read: the host reads a page.
    #[inline(always)]
    fn on_read(&mut self, _lpn: Lpn) {}

    /// On relocate: collection has moved what an owner holds.
    #[inline(always)]
    fn on_relocate(&mut self, _objects: &Objects<C>, _owned: Owned, _to: Ppn) {}

    /// On trim: the host has forgotten a page.
    #[inline(always)]
    fn on_trim(&mut self, _lpn: Lpn) {}

    /// Nothing refers to an object any more: it is about to be forgotten.
    #[inline(always)]
    fn on_death(&mut self, _objects: &mut Objects<C>, _object: ObjectId) {}

    /// On checkpoint: what the policy keeps is about to be stored.
    fn on_checkpoint(&mut self) {}

    /// It has been stored.
    fn on_stored(&mut self) {}

    /// Where what an owner of this policy holds lies.
    fn location(&self, _owned: Owned) -> Option<Ppn> {
        None
    }

    /// The owners of this policy whose units are on flash.
    fn owners(&self) -> Vec<Owner> {
        Vec::new()
    }

    /// Recounts what the policy keeps; `alive` are all objects.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    fn check(&self, _objects: &Objects<C>, _alive: &[ObjectId]) -> Result<(), String> {
        Ok(())
    }

    /// Bytes held.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Counts begin anew.
    fn restart_counters(&mut self) {}
}

/// A policy that a device may have.
impl<C: Content, P: Policy<C>> Policy<C> for Option<P> {
    #[inline(always)]
    fn on_write(&mut self, objects: &mut Objects<C>, served: &Served) {
        if let Some(policy) = self {
            policy.on_write(objects, served);
        }
    }

    #[inline(always)]
    fn on_read(&mut self, lpn: Lpn) {
        if let Some(policy) = self {
            policy.on_read(lpn);
        }
    }

    #[inline(always)]
    fn on_relocate(&mut self, objects: &Objects<C>, owned: Owned, to: Ppn) {
        if let Some(policy) = self {
            policy.on_relocate(objects, owned, to);
        }
    }

    #[inline(always)]
    fn on_trim(&mut self, lpn: Lpn) {
        if let Some(policy) = self {
            policy.on_trim(lpn);
        }
    }

    #[inline(always)]
    fn on_death(&mut self, objects: &mut Objects<C>, object: ObjectId) {
        if let Some(policy) = self {
            policy.on_death(objects, object);
        }
    }

    fn on_checkpoint(&mut self) {
        self.iter_mut().for_each(P::on_checkpoint);
    }

    fn on_stored(&mut self) {
        self.iter_mut().for_each(P::on_stored);
    }

    fn location(&self, owned: Owned) -> Option<Ppn> {
        self.as_ref()?.location(owned)
    }

    fn owners(&self) -> Vec<Owner> {
        self.iter().flat_map(P::owners).collect()
    }

    fn check(&self, objects: &Objects<C>, alive: &[ObjectId]) -> Result<(), String> {
        self.iter()
            .try_for_each(|policy| policy.check(objects, alive))
    }

    fn heap_bytes(&self) -> usize {
        self.iter().map(P::heap_bytes).sum()
    }

    fn restart_counters(&mut self) {
        self.iter_mut().for_each(P::restart_counters);
    }
}

/// Makes the set of policies of a list: each question is put to all, in this order.
macro_rules! policies {
    ($always:ident: $kind:ty; $($(#[$where:meta])* $name:ident: $policy:ty,)*) => {
        /// The policies of a device. `V` is an encoded value in RAM.
        pub(crate) struct PolicySet<C, V> {
            pub $always: $kind,
            $($(#[$where])* pub $name: Option<$policy>,)*
        }

        impl<C: Content, V: Clone> PolicySet<C, V> {
            /// The first one and nothing else.
            pub fn new($always: $kind) -> Self {
                PolicySet { $always, $($(#[$where])* $name: None,)* }
            }
        }

        impl<C: Content, V: Clone> Policy<C> for PolicySet<C, V> {
            #[inline(always)]
            fn on_write(&mut self, objects: &mut Objects<C>, served: &Served) {
                self.$always.on_write(objects, served);
                $($(#[$where])* self.$name.on_write(objects, served);)*
            }
            #[inline(always)]
            fn on_read(&mut self, lpn: Lpn) {
                Policy::<C>::on_read(&mut self.$always, lpn);
                $($(#[$where])* Policy::<C>::on_read(&mut self.$name, lpn);)*
            }
            #[inline(always)]
            fn on_relocate(&mut self, objects: &Objects<C>, owned: Owned, to: Ppn) {
                self.$always.on_relocate(objects, owned, to);
                $($(#[$where])* self.$name.on_relocate(objects, owned, to);)*
            }
            #[inline(always)]
            fn on_trim(&mut self, lpn: Lpn) {
                Policy::<C>::on_trim(&mut self.$always, lpn);
                $($(#[$where])* Policy::<C>::on_trim(&mut self.$name, lpn);)*
            }
            #[inline(always)]
            fn on_death(&mut self, objects: &mut Objects<C>, object: ObjectId) {
                self.$always.on_death(objects, object);
                $($(#[$where])* self.$name.on_death(objects, object);)*
            }
            fn on_checkpoint(&mut self) {
                Policy::<C>::on_checkpoint(&mut self.$always);
                $($(#[$where])* Policy::<C>::on_checkpoint(&mut self.$name);)*
            }
            fn on_stored(&mut self) {
                Policy::<C>::on_stored(&mut self.$always);
                $($(#[$where])* Policy::<C>::on_stored(&mut self.$name);)*
            }
            fn location(&self, owned: Owned) -> Option<Ppn> {
                [
                    Policy::<C>::location(&self.$always, owned),
                    $($(#[$where])* Policy::<C>::location(&self.$name, owned),)*
                ].into_iter().flatten().next()
            }
            fn owners(&self) -> Vec<Owner> {
                [
                    Policy::<C>::owners(&self.$always),
                    $($(#[$where])* Policy::<C>::owners(&self.$name),)*
                ].concat()
            }
            fn check(&self, objects: &Objects<C>, alive: &[ObjectId]) -> Result<(), String> {
                self.$always.check(objects, alive)?;
                $($(#[$where])* self.$name.check(objects, alive)?;)*
                Ok(())
            }
            fn heap_bytes(&self) -> usize {
                [
                    Policy::<C>::heap_bytes(&self.$always),
                    $($(#[$where])* Policy::<C>::heap_bytes(&self.$name),)*
                ].iter().sum()
            }
            fn restart_counters(&mut self) {
                Policy::<C>::restart_counters(&mut self.$always);
                $($(#[$where])* Policy::<C>::restart_counters(&mut self.$name);)*
            }
        }
    };
}

// The list.
policies! {
    dedup: Dedup;
    delta: Delta<V>,
    versions: Versions,
    scan: Scan<C>,
    prefetch: Prefetch,
    #[cfg(test)]
    witness: Witness<C>,
}
