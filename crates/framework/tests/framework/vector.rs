//! Loops over columns against the plain way to say the same.

use supercargo_framework::{
    fast::Normalization,
    formula::{Divisor, Inverse},
    normalize,
    vector::{BLOCK, Bounds, Tops, WeightedColumn, add_weighted, normalized, open_with_tops, sum_with_tops},
};

/// 200 scores of 0 to 6, every 50th node closed.
fn columns() -> (Vec<f64>, Vec<f64>) {
    let scores = (0..200).map(|i| f64::from(i % 7)).collect();
    let open = (0..200).map(|i| if i % 50 == 0 { f64::NEG_INFINITY } else { 0.0 }).collect();
    (scores, open)
}

#[test]
fn tops_know_the_best_and_where_they_are() {
    let (mut totals, _) = columns();
    let mut tops = Tops::default();
    tops.rebuild(&totals);
    // 6, 13, 20 … 195: 28 places
    assert_eq!(tops.best(&totals), Some((6.0, 28)));
    assert_eq!(tops.nth(&totals, 6.0, 0), Some(6));
    assert_eq!(tops.nth(&totals, 6.0, 27), Some(195));
    assert_eq!(tops.nth(&totals, 6.0, 28), None);
    totals[130] = 9.0;
    tops.update(&totals, 130);
    assert_eq!(tops.best(&totals), Some((9.0, 1)));
    assert_eq!(tops.nth(&totals, 9.0, 0), Some(130));
    totals.fill(f64::NEG_INFINITY);
    tops.rebuild(&totals);
    assert_eq!(tops.best(&totals), None);
}

#[test]
fn bounds_leave_out_closed_nodes_and_marks() {
    let open = [0.0, 0.0, f64::NEG_INFINITY, 0.0, 0.0];
    let column = [3.0, -1.0, 99.0, 7.0, 5.0];
    let bounds = |normalization| {
        let Bounds { lowest, highest } = Bounds::of(normalization, &column, &open);
        (lowest, highest)
    };
    assert_eq!(bounds(Normalization::MinMax), (-1.0, 7.0));
    // For Inverted a negative score is a mark.
    assert_eq!(bounds(Normalization::Inverted), (3.0, 7.0));
}

#[test]
fn all_loops_agree_with_one_score_at_a_time() {
    let (scores, open) = columns();
    assert!(scores.len() > 3 * BLOCK && !scores.len().is_multiple_of(BLOCK));
    let all = [
        Normalization::None,
        Normalization::Proportional,
        Normalization::Reversed,
        Normalization::MinMax,
        Normalization::Inverted,
    ];
    for normalization in all {
        let bounds = Bounds::of(normalization, &scores, &open);
        let expected: Vec<f64> =
            scores.iter().zip(&open).map(|(s, o)| o + 3.0 * normalized(normalization, bounds, *s)).collect();
        let mut added = open.clone();
        let weighted = WeightedColumn { column: &scores, weight: 3.0, normalization, bounds };
        add_weighted(&mut added, weighted);
        assert_eq!(added, expected, "{normalization:?}");
        let (mut summed, mut tops) = (Vec::new(), Tops::default());
        sum_with_tops(&mut summed, &mut tops, &vec![0.0; open.len()], &open, weighted);
        assert_eq!(summed, expected, "{normalization:?}");
        // The same from the other side: what is summed up already, of the nodes that are open.
        let (mut masked, mut same_tops) = (Vec::new(), Tops::default());
        let everywhere: Vec<f64> =
            scores.iter().map(|score| 3.0 * normalized(normalization, bounds, *score)).collect();
        open_with_tops(&mut masked, &mut same_tops, &everywhere, &open);
        assert_eq!((&masked, same_tops.best(&masked)), (&summed, tops.best(&summed)), "{normalization:?}");
        let highest = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ties = expected.iter().filter(|total| **total == highest).count();
        assert_eq!(tops.best(&summed), Some((highest, ties)), "{normalization:?}");
    }
}

#[test]
fn columns_and_whole_numbers_agree() {
    let whole = |normalization, column: &mut [i64]| match normalization {
        Normalization::Proportional => normalize::proportional(column),
        Normalization::Reversed => normalize::reversed(column),
        _ => normalize::min_max(column),
    };
    let columns: [&[i64]; 4] = [&[0, 1, 2, 3], &[0, 0], &[7, 7, 1], &[1 << 40, 12_345, (1 << 40) - 1]];
    for normalization in [Normalization::Proportional, Normalization::Reversed, Normalization::MinMax] {
        for raw in columns {
            let mut expected = raw.to_vec();
            whole(normalization, &mut expected);
            let scores: Vec<f64> = raw.iter().map(|score| *score as f64).collect();
            let bounds = Bounds::of(normalization, &scores, &vec![0.0; scores.len()]);
            let got: Vec<i64> =
                scores.iter().map(|score| normalized(normalization, bounds, *score) as i64).collect();
            assert_eq!(got, expected, "{normalization:?} of {raw:?}");
        }
    }
}

#[test]
fn a_quotient_by_an_inverse_is_the_quotient() {
    // Divisors up to 2⁴³, at and around whole quotients.
    let mut divisor = 3_i64;
    while divisor < 1 << 43 {
        for whole in 0..=100 {
            for number in [whole * divisor - 1, whole * divisor, whole * divisor + 1] {
                if number >= 0 {
                    let got = Inverse::of(divisor as f64).divide(number as f64);
                    assert_eq!(got as i64, number / divisor, "{number} / {divisor}");
                }
            }
        }
        divisor = divisor * 3 / 2 + 1;
    }
}
