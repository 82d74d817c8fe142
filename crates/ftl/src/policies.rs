//! The policies of a device that looks at content. Each is a room of its own: it keeps what it needs, and answers the
//! same few questions (`Policy`). It never acts on the device: the core asks, decides and acts (`content`).
//!
//! | folder | policy |
//! |---|---|
//! | [`dedup`] | one page for each distinct value (CA-SSD) |
//! | [`delta`] | updates as deltas from what they replace (DeltaFTL), or from what resembles them |
//! | [`compress`] | values compressed by themselves |
//! | [`history`] | old versions, and the way back to them (BVSSD) |
//! | [`out_of_line`] | pages that are hashed in idle time (CAFTL) |
//! | [`prefetch`] | index entries restored from flash |
//!
//! | file | what it is |
//! |---|---|
//! | `forms` | what a write can be stored as in fewer bytes than a page, and which of that costs least |
//! | [`options`] | what is encoded, and when |
//!
//! The list of them stands once, at `policies!` in this file. One more is its folder and a line there, and where users
//! set it, a field of [`Policies`](crate::Policies).

pub mod compress;
pub mod dedup;
pub mod delta;
pub(crate) mod forms;
pub mod history;
pub mod options;
pub mod out_of_line;
pub mod prefetch;
#[cfg(test)]
mod witness;

use std::marker::PhantomData;

use flashlore_content::{Content, Dedup, DedupOptions, Sketch};
use flashlore_flash::{Lpn, ObjectId, Owned, Owner, Ppn, Tables};

use self::compress::Compress;
use self::delta::Delta;
use self::forms::Form;
use self::history::{Versions, VersionsOptions};
use self::options::EncodingOptions;
use self::out_of_line::Scan;
use self::prefetch::Prefetch;
use crate::mapping::objects::Objects;
use crate::mapping::packing::Packing;
use crate::mapping::packs::Slot;

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
    /// The form that it was stored in, and its bytes, if that is not a page.
    pub encoded: Option<(Form, u16)>,
    /// What its page resembles others by, if it was sketched.
    pub sketch: Option<Sketch>,
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

/// What a policy looks at to answer: it can change nothing of it. There is one where values may be encoded.
pub(crate) struct View<'a, C: Content, V, S: Tables> {
    /// The map and the objects.
    pub objects: &'a Objects<C, S>,
    /// What is packed.
    pub packing: &'a Packing<V, S>,
    /// Whether what a page holds becomes an old version when it is written.
    pub records: bool,
}

impl<C: Content, V, S: Tables> View<'_, C, V, S> {
    /// Whether a packed value alone keeps its base.
    pub fn is_alone(&self, slot: &Slot) -> bool {
        let base = self.objects.packed(slot.object).map(|(_, base)| base);
        let base = base.filter(|base| base.is_some());
        base.is_some_and(|b| self.objects.sole_dependent(b) == Some(slot.object))
    }
}

/// What a policy is asked. Every question has the answer of a policy that does not care.
///
/// The questions of a write, in their order: [`on_write_begun`](Policy::on_write_begun) and
/// [`may_encode`](Policy::may_encode) when it is planned, [`needs_sketch`](Policy::needs_sketch) and
/// [`base_to_read`](Policy::base_to_read) for what has to be fetched, [`form`](Policy::form) when it is committed, and
/// [`on_write`](Policy::on_write) once it is decided and stored.
pub(crate) trait Policy<C: Content, V: Clone, S: Tables> {
    /// A write of a page comes soon: asks for what that will touch. Not asked on a device whose types hold nothing but
    /// the present, each value in a page of its own ([`Parts::HOLDS_MORE`](crate::content::parts::Parts::HOLDS_MORE)).
    #[inline(always)]
    fn prefetch(&self, _lpn: Lpn) {}

    /// On write: one begins.
    #[inline(always)]
    fn on_write_begun(&mut self, _lpn: Lpn) {}

    /// On write: whether the policy may store it in fewer bytes than a page.
    #[inline(always)]
    fn may_encode(&self, _view: &View<'_, C, V, S>, _lpn: Lpn) -> bool {
        false
    }

    /// The form that the policy would offer for a write that began now, without looking for a base.
    fn next_form(&self, _view: &View<'_, C, V, S>, _lpn: Lpn) -> Option<Form> {
        None
    }

    /// On write: the object that it would be a delta from, if that need not be looked for.
    #[inline(always)]
    fn base_of(&self, _view: &View<'_, C, V, S>, _lpn: Lpn) -> Option<ObjectId> {
        None
    }

    /// On write: whether a base has to be looked for, which takes a sketch.
    fn needs_sketch(&self, _view: &View<'_, C, V, S>, _lpn: Lpn) -> bool {
        false
    }

    /// On write: the object that has to be read before it is committed; `read` is the one that was, if it still is
    /// what it was.
    fn base_to_read(
        &mut self,
        _view: &View<'_, C, V, S>,
        _lpn: Lpn,
        _sketch: Option<&Sketch>,
        _read: Option<ObjectId>,
    ) -> Option<ObjectId> {
        None
    }

    /// On write: a form in which it may be stored, to be encoded and compared with the others. Of two that cost the
    /// same the one of the policy first in the list is taken.
    #[inline(always)]
    fn form(
        &mut self,
        _view: &View<'_, C, V, S>,
        _lpn: Lpn,
        _sketch: Option<&Sketch>,
    ) -> Option<Form> {
        None
    }

    /// On write: whether a form that was offered for it is still what the policy would offer, after collection has made
    /// room for it.
    fn still_offers(&self, _view: &View<'_, C, V, S>, _lpn: Lpn, _form: &Form) -> bool {
        true
    }

    /// On write: it has been decided, and the map is about to change.
    #[inline(always)]
    fn on_write(&mut self, _objects: &mut Objects<C, S>, _served: &Served) {}

    /// On read: the host reads a page.
    #[inline(always)]
    fn on_read(&mut self, _lpn: Lpn) {}

    /// On read: whether a page that was read is to be materialized, if it is a delta.
    fn wants_whole(&self, _lpn: Lpn) -> bool {
        false
    }

    /// On relocate: whether a delta that collection meets, or its base, is to be materialized rather than moved.
    fn is_to_merge(&self, _view: &View<'_, C, V, S>, _slot: &Slot) -> bool {
        false
    }

    /// On relocate: collection has moved what an owner holds. Asked where [`prefetch`](Policy::prefetch) is.
    #[inline(always)]
    fn on_relocate(&mut self, _objects: &Objects<C, S>, _owned: Owned, _to: Ppn) {}

    /// Where packed pages become many: whether nearly empty ones are packed anew, rather than that the values of the
    /// oldest are materialized.
    fn packs_densely(&self) -> bool {
        false
    }

    /// The periodic scan begins: notes what is to be materialized in idle time. Whether a later one would note
    /// anything else.
    fn begin_cold_scan(&mut self, _view: &View<'_, C, V, S>) -> bool {
        false
    }

    /// What the scan noted next, and is a delta still.
    fn next_cold(&mut self, _objects: &Objects<C, S>) -> Option<(ObjectId, Lpn)> {
        None
    }

    /// On trim: the host has forgotten a page.
    #[inline(always)]
    fn on_trim(&mut self, _lpn: Lpn) {}

    /// The map cache has dropped the entry of a page.
    #[inline(always)]
    fn on_entry_dropped(&mut self, _lpn: Lpn) {}

    /// Nothing refers to an object any more: it is about to be forgotten.
    #[inline(always)]
    fn on_death(&mut self, _objects: &mut Objects<C, S>, _object: ObjectId) {}

    /// Where what an owner of this policy holds lies. Asked where [`prefetch`](Policy::prefetch) is.
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
    fn check(&self, _objects: &Objects<C, S>, _alive: &[ObjectId]) -> Result<(), String> {
        Ok(())
    }

    /// Bytes held.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Counts begin anew.
    fn restart_counters(&mut self) {}
}

/// What a device is asked to have, and its sizes: each policy finds there what it is made of.
pub(crate) struct Asked<'a, S> {
    /// Where tables are made.
    pub tables: &'a S,
    pub dedup: DedupOptions,
    pub encoding: Option<EncodingOptions>,
    pub versions: Option<VersionsOptions>,
    /// Logical pages.
    pub exported: u32,
    /// Objects there may be at a time.
    pub most_objects: u32,
}

/// Makes the set of policies of a list, and `each!` and `each_mut!`, which put a question to all that a device has, in
/// the order of the list.
macro_rules! policies {
    ($d:tt $always:ident: $kind:ty = $first:expr; $($(#[$where:meta])* $name:ident: $policy:ty = $room:expr,)*) => {
        /// The policies of a device. `V` is an encoded value in RAM.
        pub(crate) struct PolicySet<C: Content, V, S: Tables> {
            pub $always: $kind,
            $($(#[$where])* pub $name: Option<$policy>,)*
            /// What the policies know of a value, an encoded one, and the tables.
            values: PhantomData<fn(V, S) -> C>,
        }

        impl<C: Content, V, S: Tables> PolicySet<C, V, S> {
            /// Those that are asked for.
            pub fn new(asked: &Asked<'_, S>) -> Self {
                PolicySet {
                    $always: $first(asked),
                    $($(#[$where])* $name: $room(asked),)*
                    values: PhantomData,
                }
            }
        }

        /// How many there are in the list.
        const POLICIES: usize = [
            stringify!($always),
            $($(#[$where])* stringify!($name),)*
        ].len();

        macro_rules! each {
            ($d set:expr, $d policy:ident => $d ask:expr) => {{
                { let $d policy = &$d set.$always; $d ask; }
                $($(#[$where])* if let Some($d policy) = &$d set.$name { $d ask; })*
            }};
        }
        macro_rules! each_mut {
            ($d set:expr, $d policy:ident => $d ask:expr) => {{
                { let $d policy = &mut $d set.$always; $d ask; }
                $($(#[$where])* if let Some($d policy) = &mut $d set.$name { $d ask; })*
            }};
        }
    };
}

// The list.
policies! { $
    dedup: Dedup<C::Index> = dedup::room;
    delta: Delta = delta::room,
    compress: Compress = compress::room,
    versions: Versions<S> = history::room,
    scan: Scan<C> = out_of_line::room,
    prefetch: Prefetch = prefetch::room,
    #[cfg(test)]
    witness: witness::Witness<C> = witness::room,
}

/// Puts a form behind those that were offered before.
#[inline(always)]
fn offer<'a>(places: &mut impl Iterator<Item = &'a mut Option<Form>>, form: Option<Form>) {
    if let Some(form) = form
        && let Some(place) = places.next()
    {
        *place = Some(form);
    }
}

impl<C: Content, V: Clone, S: Tables> PolicySet<C, V, S> {
    /// The forms that are offered for a write, in front of the first `None`.
    #[inline(always)]
    pub fn forms(
        &mut self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        sketch: Option<&Sketch>,
    ) -> [Option<Form>; POLICIES] {
        let mut forms = [None; POLICIES];
        let mut places = forms.iter_mut();
        each_mut!(self, policy => {
            offer(&mut places, Policy::<C, V, S>::form(policy, view, lpn, sketch));
        });
        forms
    }

    /// The forms that would be offered for a write that began now, without looking for a base, in front of the first
    /// `None`.
    pub fn next_forms(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> [Option<Form>; POLICIES] {
        let mut forms = [None; POLICIES];
        let mut places = forms.iter_mut();
        each!(self, policy => {
            offer(&mut places, Policy::<C, V, S>::next_form(policy, view, lpn));
        });
        forms
    }
}

/// All of them together: what one says, or the first one that knows, or what all say.
impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for PolicySet<C, V, S> {
    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        each!(self, policy => Policy::<C, V, S>::prefetch(policy, lpn));
    }

    #[inline(always)]
    fn on_write_begun(&mut self, lpn: Lpn) {
        each_mut!(self, policy => Policy::<C, V, S>::on_write_begun(policy, lpn));
    }

    #[inline(always)]
    fn may_encode(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> bool {
        let mut any = false;
        each!(self, policy => any = any || policy.may_encode(view, lpn));
        any
    }

    #[inline(always)]
    fn base_of(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> Option<ObjectId> {
        let mut base = None;
        each!(self, policy => base = base.or_else(|| policy.base_of(view, lpn)));
        base
    }

    fn needs_sketch(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> bool {
        let mut any = false;
        each!(self, policy => any = any || policy.needs_sketch(view, lpn));
        any
    }

    fn base_to_read(
        &mut self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        sketch: Option<&Sketch>,
        read: Option<ObjectId>,
    ) -> Option<ObjectId> {
        let mut base = None;
        each_mut!(self, policy => {
            base = base.or_else(|| policy.base_to_read(view, lpn, sketch, read))
        });
        base
    }

    fn still_offers(&self, view: &View<'_, C, V, S>, lpn: Lpn, form: &Form) -> bool {
        let mut all = true;
        each!(self, policy => all = all && policy.still_offers(view, lpn, form));
        all
    }

    #[inline(always)]
    fn on_write(&mut self, objects: &mut Objects<C, S>, served: &Served) {
        each_mut!(self, policy => Policy::<C, V, S>::on_write(policy, objects, served));
    }

    #[inline(always)]
    fn on_read(&mut self, lpn: Lpn) {
        each_mut!(self, policy => Policy::<C, V, S>::on_read(policy, lpn));
    }

    fn wants_whole(&self, lpn: Lpn) -> bool {
        let mut any = false;
        each!(self, policy => any = any || Policy::<C, V, S>::wants_whole(policy, lpn));
        any
    }

    fn is_to_merge(&self, view: &View<'_, C, V, S>, slot: &Slot) -> bool {
        let mut any = false;
        each!(self, policy => any = any || policy.is_to_merge(view, slot));
        any
    }

    #[inline(always)]
    fn on_relocate(&mut self, objects: &Objects<C, S>, owned: Owned, to: Ppn) {
        each_mut!(self, policy => Policy::<C, V, S>::on_relocate(policy, objects, owned, to));
    }

    fn packs_densely(&self) -> bool {
        let mut any = false;
        each!(self, policy => any = any || Policy::<C, V, S>::packs_densely(policy));
        any
    }

    fn begin_cold_scan(&mut self, view: &View<'_, C, V, S>) -> bool {
        let mut any = false;
        each_mut!(self, policy => any |= policy.begin_cold_scan(view));
        any
    }

    fn next_cold(&mut self, objects: &Objects<C, S>) -> Option<(ObjectId, Lpn)> {
        let mut cold = None;
        each_mut!(self, policy => {
            cold = cold.or_else(|| Policy::<C, V, S>::next_cold(policy, objects))
        });
        cold
    }

    #[inline(always)]
    fn on_trim(&mut self, lpn: Lpn) {
        each_mut!(self, policy => Policy::<C, V, S>::on_trim(policy, lpn));
    }

    fn on_entry_dropped(&mut self, lpn: Lpn) {
        each_mut!(self, policy => Policy::<C, V, S>::on_entry_dropped(policy, lpn));
    }

    #[inline(always)]
    fn on_death(&mut self, objects: &mut Objects<C, S>, object: ObjectId) {
        each_mut!(self, policy => Policy::<C, V, S>::on_death(policy, objects, object));
    }

    fn location(&self, owned: Owned) -> Option<Ppn> {
        let mut found = None;
        each!(self, policy => {
            found = found.or_else(|| Policy::<C, V, S>::location(policy, owned))
        });
        found
    }

    fn owners(&self) -> Vec<Owner> {
        let mut owners = Vec::new();
        each!(self, policy => owners.extend(Policy::<C, V, S>::owners(policy)));
        owners
    }

    fn check(&self, objects: &Objects<C, S>, alive: &[ObjectId]) -> Result<(), String> {
        each!(self, policy => Policy::<C, V, S>::check(policy, objects, alive)?);
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        let mut bytes = 0;
        each!(self, policy => bytes += Policy::<C, V, S>::heap_bytes(policy));
        bytes
    }

    fn restart_counters(&mut self) {
        each_mut!(self, policy => Policy::<C, V, S>::restart_counters(policy));
    }
}
