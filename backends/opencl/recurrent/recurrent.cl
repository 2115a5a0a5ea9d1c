// SPDX-License-Identifier: Apache-2.0
// Steps of rnn, gru and lstm. x (T, B, I), w (D, G H, I), r (D, G H, H), b (D, 2 G H), states (D, B, H), y (T, D, B, H),
// gates (T, B, D, n H).
// A work-item has unit u of sequence i in direction d. `inputs` (T, B, D, G H) are the products x w' of all steps, `states` (D, B, n H) the
// products h r' of this step for n gates.
typedef struct {
  long steps, batch, directions, units, gates;
  int reversed, variant;  // variant: rnn 1 rectifies; gru 1 resets last
} Layer;
#define STATE                                                                                                        \
  const long e = get_global_id(0);                                                                                   \
  if (e >= l.directions * l.batch * l.units) return;                                                                 \
  const long d = e / (l.batch * l.units), i = e / l.units % l.batch, u = e % l.units;                                \
  const long t = time_of(&l, d, step);                                                                               \
  const long sequence = ((t * l.directions + d) * l.batch + i) * l.units + u;
// Unit u of gate g of a (T, B, D, count H).
#define GATE(g, count) ((((t * l.batch + i) * l.directions + d) * (count) + (g)) * l.units + u)
static inline long time_of(const Layer *l, long d, long step) {
  return l->reversed || d == 1 ? l->steps - 1 - step : step;
}
// Element e of the state before a step: of the previous step's results, h0 or 0.
static inline T state_before(const Layer *l, const global T *y, const global T *h0, long step, long d, long i, long u) {
  if (step > 0) return y[((time_of(l, d, step - 1) * l->directions + d) * l->batch + i) * l->units + u];
  return h0 ? h0[(d * l->batch + i) * l->units + u] : 0;
}
// Unit u of gate g of a (D, B, count H).
#define STATE_GATE(g, count) (((d * l.batch + i) * (count) + (g)) * l.units + u)
// bw + br of unit u of gate g, or one of them.
static inline T bw_of(const Layer *l, const global T *b, long d, long g, long u) {
  return b ? b[(d * 2 * l->gates + g) * l->units + u] : 0;
}
static inline T br_of(const Layer *l, const global T *b, long d, long g, long u) {
  return b ? b[((d * 2 + 1) * l->gates + g) * l->units + u] : 0;
}
// What the activation of gate g of n gets.
#define SUM_OF_GATE(g, n, all) (inputs[GATE(g, all)] + (states[STATE_GATE(g, n)] + br_of(&l, b, d, g, u) + bw_of(&l, b, d, g, u)))
#define PUT(result, at, v) \
  if (result) result[at] = v

kernel void begin_states(const long count, BUFFER(T, state), BUFFER(T, given), BUFFER(T, last)) {
  USE(T, state);
  USE(T, given);
  USE(T, last);
  const long i = get_global_id(0);
  if (i >= count) return;
  const T v = given ? given[i] : 0;
  state[i] = v;
  PUT(last, i, v);  // the result where there are no steps
}

#define STEP                                                                                                              \
  const Layer l, const long step, BUFFER(T, h), BUFFER(T, inputs), BUFFER(T, states), BUFFER(T, b), BUFFER(T, y), BUFFER(T, y_h)
#define USE_STEP  \
  USE(T, h);      \
  USE(T, inputs); \
  USE(T, states); \
  USE(T, b);      \
  USE(T, y);      \
  USE(T, y_h);    \
  STATE
#define PUT_STATE(v)  \
  h[e] = v;           \
  PUT(y, sequence, v); \
  PUT(y_h, e, v)

kernel void rnn_step(STEP) {
  USE_STEP
  const T sum = SUM_OF_GATE(0, 1, 1), v = l.variant ? (sum < 0 ? (T)0 : sum) : tanh(sum);
  PUT_STATE(v);
}

// Gates i, o, f, g.
kernel void lstm_step(STEP, BUFFER(T, c), BUFFER(T, y_c), BUFFER(T, gates), BUFFER(T, cells)) {
  USE_STEP
  USE(T, c);
  USE(T, y_c);
  USE(T, gates);
  USE(T, cells);
  T gate[4];
  for (int g = 0; g < 4; ++g) {
    const T sum = SUM_OF_GATE(g, 4, 4);
    gate[g] = g == 3 ? tanh(sum) : sigmoid_of(sum);
    PUT(gates, GATE(g, 4), gate[g]);
  }
  const T cell = gate[2] * c[e] + gate[0] * gate[3], v = gate[1] * tanh(cell);
  c[e] = cell;
  PUT_STATE(v);
  PUT(y_c, e, cell);
  PUT(cells, sequence, cell);
}

// Gates z, r and the candidate; the fourth of `gates` is the candidate's view of the state. z, reset and r h are for gru_step.
kernel void gru_gates(const Layer l, const long step, BUFFER(T, zs), BUFFER(T, resets), BUFFER(T, reset_states), BUFFER(T, h),
                      BUFFER(T, inputs), BUFFER(T, states), BUFFER(T, b)) {
  USE(T, zs);
  USE(T, resets);
  USE(T, reset_states);
  USE(T, h);
  USE(T, inputs);
  USE(T, states);
  USE(T, b);
  STATE
  const long n = l.variant ? 3 : 2;
  zs[e] = sigmoid_of(SUM_OF_GATE(0, n, 3));
  const T reset = sigmoid_of(SUM_OF_GATE(1, n, 3));
  resets[e] = reset;
  reset_states[e] = reset * h[e];
}
// `states`: the product of r h, or with the variant those of h for all gates.
kernel void gru_step(STEP, BUFFER(T, zs), BUFFER(T, resets), BUFFER(T, reset_states), BUFFER(T, gates)) {
  USE_STEP
  USE(T, zs);
  USE(T, resets);
  USE(T, reset_states);
  USE(T, gates);
  const T product = states[l.variant ? STATE_GATE(2, 3) : e] + br_of(&l, b, d, 2, u), z = zs[e], reset = resets[e];
  const T candidate = tanh(inputs[GATE(2, 3)] + bw_of(&l, b, d, 2, u) + (l.variant ? reset * product : product));
  const T v = (1 - z) * candidate + z * h[e];
  PUT(gates, GATE(0, 4), z);
  PUT(gates, GATE(1, 4), reset);
  PUT(gates, GATE(2, 4), candidate);
  PUT(gates, GATE(3, 4), l.variant ? product : reset_states[e]);
  PUT_STATE(v);
}

// From here on gradients, from the last step to the first. d_gates (T, B, D, G H) are those of the gates before their activations.
#define GRAD_STEP const Layer l, const long step, BUFFER(T, d_gates), BUFFER(T, dh), BUFFER(T, dy), BUFFER(T, y), BUFFER(T, h0)
#define USE_GRAD_STEP \
  USE(T, d_gates);    \
  USE(T, dh);         \
  USE(T, dy);         \
  USE(T, y);          \
  USE(T, h0);         \
  STATE               \
  const T own = dh[e] + (dy ? dy[sequence] : 0);

kernel void rnn_slopes(GRAD_STEP) {
  USE_GRAD_STEP
  const T v = y[sequence];
  d_gates[GATE(0, 1)] = (l.variant ? (v > 0 ? (T)1 : (T)0) : (1 - v) * (1 + v)) * own;
}

kernel void lstm_slopes(GRAD_STEP, BUFFER(T, dc), BUFFER(T, gates), BUFFER(T, cells), BUFFER(T, c0)) {
  USE_GRAD_STEP
  USE(T, dc);
  USE(T, gates);
  USE(T, cells);
  USE(T, c0);
  const T in = gates[GATE(0, 4)], out = gates[GATE(1, 4)], forget = gates[GATE(2, 4)], candidate = gates[GATE(3, 4)];
  const T squashed = tanh(cells[sequence]);
  const T of_cell = dc[e] + own * out * (1 - squashed) * (1 + squashed);
  d_gates[GATE(0, 4)] = of_cell * candidate * in * (1 - in);
  d_gates[GATE(1, 4)] = own * squashed * out * (1 - out);
  d_gates[GATE(2, 4)] = of_cell * state_before(&l, cells, c0, step, d, i, u) * forget * (1 - forget);
  d_gates[GATE(3, 4)] = of_cell * in * (1 - candidate) * (1 + candidate);
  dc[e] = of_cell * forget;
}

// gru: d_gates are those of x's contribution to each gate, d_states those of the state's.
kernel void gru_slopes(GRAD_STEP, BUFFER(T, d_states), BUFFER(T, next), BUFFER(T, gates)) {
  USE_GRAD_STEP
  USE(T, d_states);
  USE(T, next);
  USE(T, gates);
  const T z = gates[GATE(0, 4)], reset = gates[GATE(1, 4)], candidate = gates[GATE(2, 4)];
  const T of_z = own * (state_before(&l, y, h0, step, d, i, u) - candidate) * z * (1 - z);
  const T of_candidate = own * (1 - z) * (1 - candidate) * (1 + candidate);
  d_gates[GATE(0, 3)] = d_states[GATE(0, 3)] = of_z;
  d_gates[GATE(2, 3)] = of_candidate;
  d_states[GATE(2, 3)] = l.variant ? of_candidate * reset : of_candidate;
  next[e] = own * z;
}
// `of_resets` (D, B, H): the gradient of r h, which is not there with the variant.
kernel void gru_reset_slopes(const Layer l, const long step, BUFFER(T, d_gates), BUFFER(T, d_states), BUFFER(T, next), BUFFER(T, gates),
                             BUFFER(T, of_resets), BUFFER(T, y), BUFFER(T, h0)) {
  USE(T, d_gates);
  USE(T, d_states);
  USE(T, next);
  USE(T, gates);
  USE(T, of_resets);
  USE(T, y);
  USE(T, h0);
  STATE
  const T reset = gates[GATE(1, 4)];
  T scaled;
  if (l.variant) {
    scaled = d_gates[GATE(2, 3)] * gates[GATE(3, 4)];
  } else {
    scaled = of_resets[e] * state_before(&l, y, h0, step, d, i, u);
    next[e] += of_resets[e] * reset;
  }
  d_gates[GATE(1, 3)] = d_states[GATE(1, 3)] = scaled * reset * (1 - reset);
}

// Half 0 (bw) or 1 (br) of db: sums over steps and sequences.
kernel void bias_slopes(const Layer l, const long half_of, BUFFER(T, db), BUFFER(T, d_gates)) {
  USE(T, db);
  USE(T, d_gates);
  const long e = get_global_id(0), columns = l.gates * l.units;
  if (e >= l.directions * columns) return;
  const long d = e / columns, k = e - d * columns;
  Sum sum = {0, 0};
  for (long row = 0; row < l.steps * l.batch; ++row) sum = added(sum, d_gates[(row * l.directions + d) * columns + k]);
  db[(d * 2 + half_of) * columns + k] = value_of(sum);
}

// The factors of r in every step, (T, B, D, H): the states before the steps; with `gates` it is r h, kept as their fourth.
kernel void factors(const Layer l, BUFFER(T, result), BUFFER(T, y), BUFFER(T, h0), BUFFER(T, gates)) {
  USE(T, result);
  USE(T, y);
  USE(T, h0);
  USE(T, gates);
  const long e = get_global_id(0), row = e / (l.directions * l.units), u = e % l.units;
  if (row >= l.steps * l.batch) return;
  const long d = e / l.units % l.directions, t = row / l.batch, i = row % l.batch;
  result[e] = gates ? gates[GATE(3, 4)] : state_before(&l, y, h0, time_of(&l, d, t), d, i, u);
}
