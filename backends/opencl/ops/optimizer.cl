// SPDX-License-Identifier: Apache-2.0
// One step of one parameter. An output may share the storage of any operand of its group: each work-item reads all operands of its element
// before it writes. Absent outputs have no buffer. LR is the type of the learning rate.
#define STEP_PARAMETERS const long count, BUFFER(LR, lr), BUFFER(long, step)
#define OPERAND(x) const T x = ((global T *)(x##_buffer + x##_offset))[i]
#define STORE(x, v)                                               \
  if (x##_buffer) ((global T *)(x##_buffer + x##_offset))[i] = v
#define BEGIN                                                     \
  const long i = get_global_id(0);                                \
  if (i >= count) return;                                         \
  USE(LR, lr);                                                    \
  const T rate = (T)lr[0];                                        \
  OPERAND(w);                                                     \
  OPERAND(g);

kernel void sgd(STEP_PARAMETERS, BUFFER(T, w), BUFFER(T, g), BUFFER(T, v), BUFFER(T, new_w), BUFFER(T, new_v), const T momentum,
                const T weight_decay, const int nesterov) {
  BEGIN
  const T h = g + weight_decay * w;
  T direction = h;
  if (v_buffer) {
    OPERAND(v);
    const T velocity = momentum * v + h;
    direction = nesterov ? h + momentum * velocity : velocity;
    STORE(new_v, velocity);
  }
  STORE(new_w, w - rate * direction);
}

// 1 - beta^step = -expm1(step log beta): with beta close to 1, the power would cancel. The logarithms come from the host, in f64.
#define ADAM                                                                            \
  BEGIN                                                                                 \
  USE(long, step);                                                                      \
  OPERAND(m);                                                                           \
  OPERAND(v);                                                                           \
  const T first_correction = -expm1(step[0] * log_beta1), second_correction = -expm1(step[0] * log_beta2); \
  const T mean = beta1 * m + rest1 * g, square = beta2 * v + rest2 * g * g;
#define ADAM_PARAMETERS                                                                                                                \
  const T beta1, const T rest1, const T log_beta1, const T beta2, const T rest2, const T log_beta2, const T epsilon, const T weight_decay
kernel void adam(STEP_PARAMETERS, BUFFER(T, w), BUFFER(T, g), BUFFER(T, m), BUFFER(T, v), BUFFER(T, new_w), BUFFER(T, new_m),
                 BUFFER(T, new_v), ADAM_PARAMETERS) {
  ADAM
  const T direction = mean / first_correction / (sqrt(square / second_correction) + epsilon);
  STORE(new_m, mean);
  STORE(new_v, square);
  STORE(new_w, w - rate * (direction + weight_decay * w));
}

kernel void amsgrad(STEP_PARAMETERS, BUFFER(T, w), BUFFER(T, g), BUFFER(T, m), BUFFER(T, v), BUFFER(T, p), BUFFER(T, new_w),
                    BUFFER(T, new_m), BUFFER(T, new_v), BUFFER(T, new_p), ADAM_PARAMETERS) {
  ADAM
  OPERAND(p);
  const T max_square = p < square ? square : p;
  const T direction = mean / first_correction / (sqrt(max_square / second_correction) + epsilon);
  STORE(new_m, mean);
  STORE(new_v, square);
  STORE(new_p, max_square);
  STORE(new_w, w - rate * (direction + weight_decay * w));
}

kernel void rmsprop(STEP_PARAMETERS, BUFFER(T, w), BUFFER(T, g), BUFFER(T, v), BUFFER(T, new_w), BUFFER(T, new_v), const T rho,
                    const T rest, const T epsilon, const int epsilon_outside) {
  BEGIN
  OPERAND(v);
  const T square = rho * v + rest * g * g;
  STORE(new_v, square);
  STORE(new_w, w - rate * g / (epsilon_outside ? sqrt(square) + epsilon : sqrt(square + epsilon)));
}

kernel void adagrad(STEP_PARAMETERS, BUFFER(T, w), BUFFER(T, g), BUFFER(T, s), BUFFER(T, new_w), BUFFER(T, new_s), const T epsilon,
                    const T weight_decay) {
  BEGIN
  OPERAND(s);
  const T h = g + weight_decay * w, sum = s + h * h;
  STORE(new_s, sum);
  STORE(new_w, w - rate * h / (sqrt(sum) + epsilon));
}

kernel void adadelta(STEP_PARAMETERS, BUFFER(T, w), BUFFER(T, g), BUFFER(T, v), BUFFER(T, delta), BUFFER(T, new_w), BUFFER(T, new_v),
                     BUFFER(T, new_delta), const T rho, const T rest, const T epsilon, const T weight_decay) {
  BEGIN
  OPERAND(v);
  OPERAND(delta);
  const T h = g + weight_decay * w, square = rho * v + rest * h * h;
  const T d = h * sqrt(delta + epsilon) / sqrt(square + epsilon);
  STORE(new_v, square);
  STORE(new_delta, rho * delta + rest * d * d);
  STORE(new_w, w - rate * d);
}
