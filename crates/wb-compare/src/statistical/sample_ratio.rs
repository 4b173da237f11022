//! The ratio of an aspect of both sides, by their samples alone.

use wb_results::comparison::Aspect;
use wb_stats::{
    CONFIDENCE, HodgesLehmann, MeanShift, PairedShift, Ratio, paired_tail_p, paired_tail_ratio, quantile_ratio, tail_p,
};

use super::observations::Observations;

impl Observations {
    /// The p-value of an aspect; `None` if it has no ratio. A tail begins at the quantile.
    pub(super) fn p_value(&self, aspect: Aspect, quantile: Option<f64>) -> Option<f64> {
        let [a, b] = &self.all;
        match (aspect, quantile) {
            (Aspect::Mean, _) => self.mean_shift().map(|shift| shift.p_value()),
            (_, Some(quantile)) => {
                let is_positive = [a, b].iter().all(|side| side.quantile(quantile) > 0.0);
                let test = if self.paired { paired_tail_p } else { tail_p };
                is_positive.then(|| test(a.in_order(), b.in_order(), quantile))
            }
            (_, None) if self.paired => PairedShift::new(a, b).map(|shift| shift.p_value()),
            (_, None) => Some(HodgesLehmann::new(a, b).p_value()),
        }
    }

    pub(super) fn ratio(&self, aspect: Aspect, quantile: Option<f64>, p_value: f64, confidence: f64) -> Option<Ratio> {
        let [a, b] = &self.all;
        match (aspect, quantile) {
            (Aspect::Mean, _) => Some(self.mean_shift()?.ratio(confidence)),
            (_, Some(quantile)) => {
                let at = |confidence| self.tail_ratio(quantile, p_value, confidence);
                // Few samples have no interval at more than 95 %.
                at(confidence).filter(|ratio| ratio.interval.is_some()).or_else(|| at(CONFIDENCE))
            }
            (_, None) if self.paired => Some(PairedShift::new(a, b)?.ratio(p_value, confidence)),
            (_, None) => Some(HodgesLehmann::new(a, b).ratio(p_value, confidence)),
        }
    }

    fn mean_shift(&self) -> Option<MeanShift> {
        let [a, b] = &self.all;
        if self.paired { MeanShift::paired(a, b) } else { MeanShift::new(a, b) }
    }

    fn tail_ratio(&self, quantile: f64, p_value: f64, confidence: f64) -> Option<Ratio> {
        let [a, b] = &self.all;
        if self.paired {
            return Some(Ratio { p_value, ..paired_tail_ratio(a, b, quantile, confidence)? });
        }
        let ratio = quantile_ratio(a, b, quantile, confidence)?;
        Some(Ratio { estimate: ratio.estimate, interval: ratio.interval, p_value })
    }
}
