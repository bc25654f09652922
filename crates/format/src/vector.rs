//! Plain loops that are compiled for several vector widths; the widest one that the processor has
//! is chosen at run time.
//!
//! [`widest`] makes three copies of one safe function: for AVX-512, for AVX2, and for the baseline
//! (SSE2, or NEON on 64-bit ARM). The source is the same, so the copies compute the same; tests
//! compare them anyway. Only the calls of the copies are `unsafe`.

/// The instructions that a copy may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is one copy"))]
pub(crate) enum Level {
    Plain,
    Avx2,
    Avx512,
}

/// The widest level that this processor has.
pub(crate) fn level() -> Level {
    static LEVEL: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
    let has = *LEVEL.get_or_init(detect);
    #[cfg(test)]
    let has = has.min(tests::LEVEL_MAX.get());
    has
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    macro_rules! have {
        ($($feature:tt)*) => { $(is_x86_feature_detected!($feature))&&* };
    }
    // Exactly the features that the copies below are compiled for.
    match (
        have!("avx2" "bmi1" "bmi2" "lzcnt" "popcnt"),
        have!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"),
    ) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Plain,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Plain
}

/// Declares a function whose body is compiled for each level. Its generics follow its name in
/// brackets, first with their bounds, then without. Functions that the body calls in its loops must
/// be `inline(always)`, or they are compiled for the baseline.
macro_rules! widest {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident [$($declared:tt)*][$($named:tt)*] (
            $($argument:ident: $type:ty),* $(,)?
        )
        $(-> $result:ty)? $body:block
    ) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "calls of a copy for a target feature, see `vector`")]
        $visibility fn $name<$($declared)*>($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn plain<$($declared)*>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2<$($declared)*>($($argument: $type),*) $(-> $result)? {
                    plain::<$($named)*>($($argument),*)
                }

                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
                fn avx512<$($declared)*>($($argument: $type),*) $(-> $result)? {
                    plain::<$($named)*>($($argument),*)
                }

                match $crate::vector::level() {
                    $crate::vector::Level::Avx512 => {
                        // SAFETY: the copy is a safe function but for its target features, and
                        // `level` is at most what `detect` found: the processor has them all.
                        return unsafe { avx512::<$($named)*>($($argument),*) }
                    }
                    $crate::vector::Level::Avx2 => {
                        // SAFETY: as for AVX-512: `detect` found all of its target features.
                        return unsafe { avx2::<$($named)*>($($argument),*) }
                    }
                    $crate::vector::Level::Plain => {}
                }
            }
            plain::<$($named)*>($($argument),*)
        }
    };
}
pub(crate) use widest;

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static LEVEL_MAX: Cell<Level> = const { Cell::new(Level::Avx512) };
    }

    /// The results of `run` at every level that this processor has, the plain one first.
    pub(crate) fn at_each_level<R>(run: impl Fn() -> R) -> Vec<R> {
        let levels = [Level::Plain, Level::Avx2, Level::Avx512]
            .into_iter()
            .filter(|level| *level <= level_of_processor());
        let results = levels.map(|level| {
            LEVEL_MAX.set(level);
            run()
        });
        let results = results.collect();
        LEVEL_MAX.set(Level::Avx512);
        results
    }

    fn level_of_processor() -> Level {
        LEVEL_MAX.set(Level::Avx512);
        level()
    }
}
