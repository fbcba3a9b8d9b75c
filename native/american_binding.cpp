// The Python side of American options.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "american.hpp"
#include "column.hpp"
#include "dispatch.hpp"
#include "dividends.hpp"

namespace nb = nanobind;
using Doubles = Column<double>;
using Booleans = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The nodes of all resolutions, checked once.
class American {
    std::vector<std::unique_ptr<Doubles>> tables;
    AmericanNodes nodes[LEVELS];
    Doubles coefficients;
    double centre, step, tail, settled;

    static void fit(const Doubles& table, size_t size) {
        if (table.size() != size) throw std::invalid_argument("a table of nodes has another length than its sizes say");
    }

   public:
    American(nb::list levels, nb::handle erfcx, double centre_, double step_, double tail_, double settled_)
        : coefficients(erfcx), centre(centre_), step(step_), tail(tail_), settled(settled_) {
        if (nb::len(levels) != LEVELS) throw std::invalid_argument("five resolutions are needed");
        if (coefficients.size() != ERFCX_TERMS) throw std::invalid_argument("24 coefficients are needed");
        for (size_t k = 0; k < LEVELS; k++) {
            const nb::list given = nb::cast<nb::list>(levels[k]);
            if (nb::len(given) != 6) throw std::invalid_argument("six tables are needed");
            const Doubles* of[6];
            for (size_t j = 0; j < 6; j++) {
                tables.push_back(std::make_unique<Doubles>(given[j]));
                of[j] = tables.back().get();
            }
            const size_t n = of[0]->size(), l = of[2]->size() / 3, p = of[4]->size() / 3;
            if (n == 0 || n % 4 != 0 || l % 8 != 0 || p % 8 != 0 || n > MOST_NODES || l > MOST_POINTS || p > MOST_PRICE_POINTS)
                throw std::invalid_argument("nodes come in fours, points in eights, and not more than the workspace holds");
            fit(*of[1], (n + 1) * (n + 1)), fit(*of[2], 3 * l), fit(*of[3], n * n * l), fit(*of[4], 3 * p), fit(*of[5], n * p);
            nodes[k] = {n, l, p, of[0]->data(), of[1]->data(), of[2]->data(), of[3]->data(), of[4]->data(), of[5]->data()};
        }
    }
    AmericanAccuracy accuracy() const { return {nodes, step, tail, settled}; }
    Erfcx erfcx() const { return {coefficients.data(), coefficients.size() - 1, centre}; }
};

// The steps of a slice with cash dividends, checked.
struct Schedule {
    std::vector<std::unique_ptr<Doubles>> columns;
    DividendSteps steps;
    Schedule(nb::list numbers, nb::list given) {
        if (nb::len(numbers) != 3 || nb::len(given) != 9) throw std::invalid_argument("three numbers and nine columns are needed");
        for (size_t j = 0; j < 9; j++) columns.push_back(std::make_unique<Doubles>(given[j]));
        const size_t count = columns[0]->size();
        for (size_t j = 0; j < 9; j++)
            if (columns[j]->size() != (j < 8 ? count : count + 1)) throw std::invalid_argument("columns of different lengths");
        const auto at = [&](size_t j) { return columns[j]->data(); };
        steps = {count, nb::cast<double>(numbers[0]), nb::cast<double>(numbers[1]), nb::cast<double>(numbers[2]),
                 at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8)};
    }
};

// Columns of options, of one length.
struct Given {
    Doubles S, K, T, r, q, sigma;
    AmericanOptions options;
    Given(nb::list columns, const Booleans& is_call)
        : S(at(columns, 0)), K(at(columns, 1)), T(at(columns, 2)), r(at(columns, 3)), q(at(columns, 4)), sigma(at(columns, 5)),
          options{S.data(), K.data(), T.data(), r.data(), q.data(), sigma.data(), is_call.data()} {
        for (const Doubles* column : {&K, &T, &r, &q, &sigma})
            if (column->size() != S.size()) throw std::invalid_argument("columns of different lengths");
        if (is_call.shape(0) != S.size()) throw std::invalid_argument("columns of different lengths");
    }
    static nb::object at(const nb::list& columns, size_t i) {
        if (nb::len(columns) != 6) throw std::invalid_argument("six columns are needed");
        return columns[i];
    }
    int64_t count() const { return static_cast<int64_t>(S.size()); }
};

void bind_american(nb::module_& m) {
    m.def("dividend_values", [](nb::list numbers, nb::list steps, nb::list options, double sign, nb::handle out, int threads) {
        const Schedule schedule(numbers, steps);
        if (nb::len(options) != 3) throw std::invalid_argument("spot, strike and volatility are needed");
        const Doubles spot(options[0]), strike(options[1]), sigma(options[2]);
        if (strike.size() != spot.size() || sigma.size() != spot.size()) throw std::invalid_argument("columns of different lengths");
        const Result to(out, 2 * spot.size());
        const nb::gil_scoped_release released;
        DISPATCH(dividend_values)
        (schedule.steps, spot.data(), strike.data(), sigma.data(), sign, to.data(), static_cast<int64_t>(spot.size()), threads);
    });
    nb::class_<American>(m, "American")
        .def(nb::init<nb::list, nb::handle, double, double, double, double>(), nb::arg("levels"), nb::arg("erfcx"), nb::arg("centre"),
             nb::arg("step"), nb::arg("tail"), nb::arg("settled"))
        .def("prices",
             [](const American& self, nb::list columns, Booleans is_call, bool with_vega, nb::handle out, int threads) {
                 const Given given(columns, is_call);
                 const Result to(out, (with_vega ? 3 : 2) * given.S.size());
                 const nb::gil_scoped_release released;
                 DISPATCH(american_prices)
                 (given.options, self.accuracy(), self.erfcx(), with_vega, to.data(), given.count(), threads);
             })
        .def("volatilities", [](const American& self, nb::handle price, nb::list columns, Booleans is_call, nb::handle out, int threads) {
            const Given given(columns, is_call);
            const Doubles wanted(price);
            if (wanted.size() != given.S.size()) throw std::invalid_argument("columns of different lengths");
            const Result to(out, given.S.size());
            const nb::gil_scoped_release released;
            DISPATCH(american_volatilities)
            (given.options, wanted.data(), self.accuracy(), self.erfcx(), to.data(), given.count(), threads);
        });
}
