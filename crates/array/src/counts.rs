//! Structures of counts, which are subtracted and added field by field.

macro_rules! counts {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $name {
            /// What was counted since counts that were taken earlier.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($field: self.$field - earlier.$field,)*
                }
            }

            /// All of them, each by its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field)),*]
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

pub(crate) use counts;
