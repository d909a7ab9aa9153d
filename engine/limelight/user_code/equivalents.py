"""What names of other libraries are called here: of NumPy, JAX, PyTorch, TensorFlow and Keras.

Each line has names as others spell them, then what to write, and after a bar a remark. A line with a remark alone is
for what has no counterpart by one name; one with "-" for names that do not exist here, and that some name of ours
looks like. Names that differ from ours in capitals and underscores alone need no line, nor does one that another
namespace of ours has. `tests/engine/user_code/library_names.json` lists the libraries' public names, by namespace.
"""

# ruff: noqa: E501  # a row of a table is one line

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


class Equivalent(NamedTuple):
    """What to write instead of a name: `ours`, by what comes after `ll.`, or "" for none; and a remark."""

    ours: str
    remark: str

    def __bool__(self) -> bool:
        return bool(self.ours or self.remark)


_FUNCTIONS: Final = """
absolute fabs -> abs
amax reduce_max -> max
amin reduce_min -> min
arccos -> acos
arccosh -> acosh
arcsin -> asin
arcsinh -> asinh
arctan -> atan
arctan2 -> atan2
arctanh -> atanh
array as_tensor convert_to_tensor from_numpy frombuffer fromiter asanyarray -> constant
tensor -> | write ll.constant(value), or ll.asarray(value)
ascontiguousarray asfortranarray require -> asarray | tensors have no strides
cast saturate_cast convert_element_type to_dtype -> astype
bitcast bitcast_convert_type -> | there is no bitcast: write ll.constant(x.numpy().view(dtype))
cat concatenate append column_stack Concatenate -> concat
hstack -> concat | ll.concat(xs, axis=1), and axis=0 of vectors
vstack row_stack -> concat | ll.concat(xs, axis=0), and ll.stack(xs) of vectors
dstack -> concat | ll.concat(xs, axis=2)
clamp clip_by_value clamp_min clamp_max -> clip
conjugate conj_physical -> conj
div true_divide truediv realdiv -> divide
floordiv -> floor_divide
mod floormod -> remainder
fmod rem truncatemod truncatediv -> | the sign of ll.remainder is that of the divisor; write x - ll.trunc(x / y) * y
eq -> equal
ne -> not_equal
gt -> greater
ge -> greater_equal
lt -> less
le -> less_equal
mul -> multiply
sub -> subtract
neg -> negative
power float_power integer_pow -> pow
invert bitwise_not -> bitwise_invert
left_shift shift_left -> bitwise_left_shift
right_shift shift_right_arithmetic -> bitwise_right_shift
rint around -> round
fix -> trunc
ediff1d -> diff
exp2 percentile cov interp trapezoid convolve cdist fori_loop functional_call check_numerics -> -
xdivy divide_no_nan multiply_no_nan reciprocal_no_nan -> where | ll.where(y == 0, 0.0, x / ll.where(y == 0, 1.0, y))
logistic expit -> sigmoid
gammaln -> lgamma
loggamma -> lgamma
psi -> digamma
igamma -> gammainc
igammac -> gammaincc
bessel_i0 modified_bessel_i0 -> i0
bessel_i1 modified_bessel_i1 -> i1
bessel_i0e -> i0e
bessel_i1e -> i1e
erf_inv -> erfinv
multigammaln mvlgamma gammasgn erfcinv -> -
rel_entr -> | write ll.xlogy(x, x / y)
squared_difference -> square | ll.square(x - y)
l2_loss -> | write ll.sum(ll.square(x)) / 2
l2_normalize normalize UnitNormalization -> | write x / ll.linalg.norm(x, axis=-1, keepdims=True)
unit_normalization -> | write x / ll.linalg.norm(x, axis=-1, keepdims=True)
deg2rad radians -> | write x * (ll.pi / 180)
rad2deg degrees -> | write x * (180 / ll.pi)
angle -> atan2 | ll.atan2(ll.imag(z), ll.real(z))
cbrt -> | write ll.sign(x) * ll.abs(x) ** (1 / 3)
frac -> trunc | x - ll.trunc(x)
lerp -> | write x + weight * (y - x)
addcmul -> | write x + value * y * z
addcdiv -> | write x + value * y / z
add_n accumulate_n -> sum | ll.sum(ll.stack(xs), axis=0)
average -> mean | with weights: ll.sum(w * x) / ll.sum(w)
nansum -> sum | ll.sum(ll.where(ll.isnan(x), 0.0, x))
nanmax nanmin nanprod nanargmax nanargmin -> | write it of ll.where(ll.isnan(x), neutral, x)
nanmean -> | with known = ~ll.isnan(x): ll.sum(ll.where(known, x, 0.0)) / ll.sum(ll.astype(known, x.dtype))
nancumsum -> cumsum | ll.cumsum(ll.where(ll.isnan(x), 0.0, x))
nanquantile nanpercentile nancumprod nanstd nanvar nanmedian -> -
ptp -> max | ll.max(x) - ll.min(x)
aminmax -> | write ll.min(x), ll.max(x)
var_mean reduce_variance -> var
std_mean reduce_std -> std
normalize_moments weighted_moments -> -
reduce_sum -> sum
reduce_mean -> mean
reduce_prod -> prod
reduce_all reduce_and -> all
reduce_any reduce_or -> any
reduce_logsumexp -> logsumexp
reduce_euclidean_norm -> linalg.norm
logmeanexp -> logsumexp | ll.logsumexp(x) - math.log(n)
logaddexp2 logcumsumexp cumlogsumexp cumulative_logsumexp -> -
cummean -> -
cumulative_trapezoid cumulative_max cumulative_min -> -
norm -> linalg.norm
dist pairwise_distance PairwiseDistance -> linalg.norm | ll.linalg.norm(x - y, axis=-1)
pdist -> -
inverse matrix_inverse pinverse -> linalg.inv
mm bmm mv dot_general batch_matmul matvec vecmat -> matmul
chain_matmul -> linalg.multi_dot
addmm addmv baddbmm addbmm addr -> matmul | x + a @ b
ger -> outer
inner -> vecdot | of vectors; of others ll.tensordot
vdot -> vecdot | of matrices: ll.vecdot(x.ravel(), y.ravel())
einsum_path -> -
matrix_exp -> linalg.expm
solve_triangular matrix_triangular_solve -> linalg.triangular_solve
self_adjoint_eig symeig -> linalg.eigh
adjoint -> matrix_transpose | of complex matrices its ll.conj
diag_part matrix_diag_part tensor_diag_part -> diagonal
diagflat tensor_diag set_diag matrix_diag diag_embed -> diag
logm sqrtm lu lu_factor lu_solve ldl_factor polar -> -
permute Permute -> permute_dims
rollaxis movedim -> moveaxis
swapdims -> swapaxes
unsqueeze -> expand_dims
atleast_1d atleast_2d atleast_3d -> -
flatten -> reshape | x.reshape(-1); in a model the layer ll.nn.Flatten()
view Unflatten -> reshape
resize -> reshape | of the same number of elements; else ll.tile, ll.pad or x[:n]
expand expand_as broadcast_in_dim -> broadcast_to
broadcast_tensors -> broadcast_arrays
broadcast_static_shape broadcast_dynamic_shape -> broadcast_shapes
unbind -> unstack
chunk array_split tensor_split hsplit vsplit dsplit split_with_sizes -> split
narrow slice_in_dim dynamic_slice dynamic_slice_in_dim strided_slice slice -> | write x[start:stop], and ll.take(x, ll.arange(n) + start) where a tensor starts it
dynamic_update_slice slice_update dynamic_update_slice_in_dim -> index_update
fliplr -> flip | ll.flip(x, axis=1)
flipud -> flip | ll.flip(x, axis=0)
reverse rev -> flip
rot90 -> flip | ll.flip(ll.swapaxes(x, 0, 1), axis=0)
repeat_interleave -> repeat
RepeatVector -> tile
ZeroPadding1D ZeroPadding2D ZeroPadding3D ZeroPad1d ZeroPad2d ConstantPad1d ConstantPad2d ReflectionPad1d -> pad
ReflectionPad2d ReplicationPad1d ReplicationPad2d constant_pad_nd -> pad
index_select embedding_lookup -> take
take_along_dim -> take_along_axis
scatter_nd -> scatter
tensor_scatter_nd_update index_put index_copy scatter_update put -> index_update
tensor_scatter_nd_add tensor_scatter_add scatter_add -> index_add
tensor_scatter_nd_max scatter_max -> index_max
tensor_scatter_nd_min scatter_min -> index_min
scatter_mul -> index_multiply
scatter_reduce -> | write ll.index_add, ll.index_max, ll.index_min or ll.index_multiply
unsorted_segment_sum -> segment_sum
unsorted_segment_mean -> segment_mean
unsorted_segment_max -> segment_max
unsorted_segment_min -> segment_min
unsorted_segment_prod -> segment_prod
masked_select boolean_mask compress extract -> | write x[mask]
masked_fill -> where | ll.where(mask, value, x)
select select_n piecewise choose -> where | ll.where(a, x, ll.where(b, y, z))
argwhere flatnonzero -> nonzero | ll.stack(ll.nonzero(x), axis=-1) has the places as rows
unique -> unique_values | ll.unique_counts and ll.unique_inverse for the rest
unique_with_counts -> unique_counts
unique_consecutive -> -
topk approx_max_k -> top_k
kthvalue argpartition partition msort sort_complex lexsort -> -
digitize bucketize -> searchsorted
histc histogram_fixed_width -> histogram
histogram2d histogramdd histogram_bin_edges -> -
tril_indices triu_indices mask_indices tri -> | write ll.tril or ll.triu of ll.ones
diag_indices ix_ mgrid ogrid -> meshgrid
indices -> meshgrid
shape -> shape_of
rank ndim -> | write x.ndim
numel size -> | write x.size
dtype -> | write x.dtype; dtypes are ll.float32 and so on
dtypes as_dtype -> | dtypes are ll.float32 and so on; the module is limelight.core.dtypes
shapes -> | x.shape is a tuple of sizes; the module is limelight.core.shapes
range -> arange
iota broadcasted_iota -> arange
logspace geomspace -> | write 10 ** ll.linspace(start, stop, n)
vander hanning hamming blackman kaiser bartlett -> -
fromfunction -> vectorize
array_equal -> allclose | exactly: ll.all(x == y)
isposinf isneginf isreal iscomplex isscalar isnat -> -
is_nan -> isnan
is_inf -> isinf
is_finite -> isfinite
promote_types common_type -> result_type
issubdtype is_floating_point is_complex -> isdtype
ndarray Array -> Tensor
double -> float64
long -> int64
half -> float16
single -> float32
short -> int16
byte char -> int8
intc int_ -> int32
csingle cfloat -> complex64
cdouble -> complex128
FloatTensor -> constant
LongTensor -> constant | ll.constant(value, dtype="int64")
Parameter -> Variable
TensorShape Size -> | shapes are tuples
IndexedSlices -> SparseGradient
ShapeDtypeStruct -> TensorSpec
SparseTensor RaggedTensor -> -
jit compile -> function
Function -> custom_gradient | what stages a function is ll.function
eval_shape make_jaxpr -> function | f.get_concrete_function(*specs).graph is what was traced
disable_jit -> config.run_functions_eagerly
executing_eagerly -> -
vmap vectorized_map -> vectorize
pmap shard_map xmap -> -
map -> map_fn
foldl foldr associative_scan lax_scan -> scan
case switch_case -> switch
py_function numpy_function pure_callback io_callback callback -> py_func
jacfwd -> jacobian | ll.jacobian(f, mode="forward")
jacrev -> jacobian
hessians -> hessian
gradients -> grad
gradient -> grad | of samples: ll.diff(y) / step
grad_and_value -> value_and_grad
linearize -> jvp
linear_transpose -> vjp
checkpoint remat RematScope -> recompute_grad
custom_vjp custom_jvp no_gradient grad_pass_through -> custom_gradient
check_grads gradgradcheck -> gradcheck
no_grad inference_mode enable_grad set_grad_enabled -> | nothing is recorded outside a tape; within one: ll.stop_gradient(x)
detach -> stop_gradient
autograd -> | write ll.GradientTape, or ll.grad(f); ll.custom_gradient for a function with its own
func lax compat backend -> | there is no such namespace: its functions are names of ll itself
numpy -> | ll itself has NumPy's functions
math ops special -> | there is no such namespace: its functions are names of ll itself
keras layers losses activations models -> nn
init -> nn.initializers
optimizers train -> optim
lr_scheduler -> optim.schedules
tree tree_util -> nest
tree_map map_structure -> nest.map_structure
tree_flatten -> nest.flatten
tree_unflatten pack_sequence_as -> nest.unflatten
tree_leaves leaves -> nest.leaves_of
cuda gpu -> | write with ll.device("GPU:0"), or x.gpu(); ll.list_devices() says what there is
is_available device_count devices local_devices list_physical_devices get_device -> list_devices
device_put -> to
enable_x64 -> | write dtype=ll.float64: both precisions are there
default_dtype get_default_dtype set_default_dtype -> | the default is ll.float32; write dtype=
convert_to_numpy device_get asnumpy -> | write x.numpy()
is_tensor -> | write isinstance(x, ll.Tensor)
identity_n -> identity
save -> | variables are NumPy arrays to others: np.savez(path, **{name: v.numpy() for name, v in module.named_variables()})
load -> | variables are assigned: saved = np.load(path), then `for name, v in module.named_variables(): v.assign(saved[name])`
saved_model Checkpoint savez save_model load_model -> | write np.savez(path, **{name: v.numpy() for name, v in module.named_variables()})
print -> | print(x) shows tensors; with the graph of a staged function runs ll.py_func(print, [x], [])
TensorArray -> | ll.scan stacks what its function returns as y; in other loops write xs = xs.at[i].set(value)
Initializer SequentialLR ball complex32 crelu dct exp1 expi expn ffi fmax fmin get hfft2 hfftn ihfft2 ihfftn info -> -
int int1 int2 int3 int4 int5 int6 int7 integer intp irfftnd lbeta multi_hot pmax pmean pmin pool psum pswapaxes -> -
qint16 qint32 qint8 quint16 quint8 ref rrelu smm uint uint1 uint2 uint3 uint4 uint5 uint6 uint7 uintc uintp zeta -> -
polynomial structure Poisson fill dropout1d dropout2d dropout3d -> -
data image io metrics audio signal summary loss test testing debug sets utils ragged sparse distribute -> -
manual_seed set_seed PRNGKey key set_random_seed set_state -> random.seed
default_rng RandomState Philox SeedGenerator -> random.Generator
get_rng_state get_state -> random.default_generator | its `state`
fold_in -> random.split
rand random_uniform random_sample sample ranf -> random.uniform
randn random_normal standard_normal -> random.normal
randint random_integers -> random.integers
rand_like -> random.uniform | ll.random.uniform(x.shape)
randn_like -> random.normal | ll.random.normal(x.shape)
randperm shuffle -> random.permutation
standard_exponential -> random.exponential
standard_gamma random_gamma -> random.gamma
standard_cauchy -> random.cauchy
lognormal -> random.normal | ll.exp(ll.random.normal(shape))
multivariate_normal -> random.normal | mean + ll.random.normal(shape) @ ll.linalg.cholesky(cov).T
rademacher -> random.bernoulli | 2.0 * ll.astype(ll.random.bernoulli(0.5, shape), ll.float32) - 1.0
stateless_uniform stateless_normal -> random.Generator
binomial geometric rayleigh weibull pareto triangular wald zipf logistic_noise bits t f chisquare -> -
irfft2 -> fft.irfftn
rfft2 -> fft.rfftn
fftnd -> fft.fftn
stft istft -> -
Linear LazyLinear linear -> nn.Dense
Bilinear -> -
Conv1d Conv2d Conv3d Conv1D Conv2D Conv3D Convolution1D Convolution2D Convolution3D -> nn.Conv | images are (batch, height, width, channels), and padding is "same" unless said otherwise
LazyConv1d LazyConv2d LazyConv3d -> nn.Conv
ConvTranspose1d ConvTranspose2d ConvTranspose3d Conv1DTranspose Conv2DTranspose Conv3DTranspose -> nn.ConvTranspose
DepthwiseConv1D DepthwiseConv2D depthwise_conv2d depthwise_conv -> nn.Conv | groups= the number of channels
conv1d conv2d conv3d convolution conv_general_dilated atrous_conv2d -> nn.conv
conv_transpose1d conv_transpose2d conv_transpose3d conv1d_transpose conv2d_transpose conv3d_transpose -> nn.conv_transpose
BatchNormalization BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm -> nn.BatchNorm
LayerNormalization -> nn.LayerNorm
GroupNormalization -> nn.GroupNorm
RMSNormalization -> nn.RMSNorm
InstanceNorm1d InstanceNorm2d InstanceNorm3d instance_norm -> nn.GroupNorm | one group for each channel
layer_normalization -> nn.layer_norm
rms_normalization -> nn.rms_norm
batch_normalization -> nn.batch_norm
local_response_norm local_response_normalization lrn LocalResponseNorm -> -
standardize -> nn.standardise
Dropout1d Dropout2d Dropout3d SpatialDropout1D SpatialDropout2D AlphaDropout alpha_dropout -> -
MaxPool1d MaxPool2d MaxPool3d MaxPooling1D MaxPooling2D MaxPooling3D MaxPool1D MaxPool2D MaxPool3D -> nn.MaxPool
AvgPool1d AvgPool2d AvgPool3d AvgPool1D AvgPool2D AvgPool3D AveragePooling1D AveragePooling2D AveragePooling3D -> nn.AvgPool
max_pool1d max_pool2d max_pool3d -> nn.max_pool
avg_pool1d avg_pool2d avg_pool3d average_pool -> nn.avg_pool
GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D -> nn.global_avg_pool
adaptive_avg_pool1d adaptive_avg_pool2d AdaptiveAvgPool1d AdaptiveAvgPool2d -> nn.global_avg_pool | for an output size of 1
GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPooling1D GlobalMaxPooling2D AdaptiveMaxPool2d -> nn.global_max_pool
RNN SimpleRNN RNNCell SimpleRNNCell -> | recurrent layers are ll.nn.LSTM and ll.nn.GRU; a plain one is ll.scan over the steps
Bidirectional TimeDistributed Masking ConvLSTM2D -> -
MultiheadAttention Attention -> nn.MultiHeadAttention
scaled_dot_product_attention -> nn.dot_product_attention
Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder -> | its parts are ll.nn.MultiHeadAttention, ll.nn.Dense and ll.nn.LayerNorm
ModuleList ModuleDict ParameterList ParameterDict -> | write a list or dictionary: modules find what is in them
Model Functional -> Module | subclass it, or write ll.nn.Sequential(...)
Input InputLayer -> | no input is declared: write ll.nn.Sequential(...), or a subclass of ll.Module
Activation -> | write the function, ll.nn.relu, as a layer of ll.nn.Sequential
Lambda -> -
Average Normalization Rescaling Resizing -> -
LogSoftmax -> nn.log_softmax
Softmax2d -> nn.softmax
hardsigmoid Hardsigmoid -> nn.hard_sigmoid
hardswish hard_swish Hardswish -> nn.hard_silu
hardtanh Hardtanh -> nn.hard_tanh
logsigmoid LogSigmoid -> nn.log_sigmoid
LeakyReLU -> nn.leaky_relu
soft_sign -> nn.softsign
hardshrink softshrink tanhshrink softmin Threshold threshold hard_shrink soft_shrink squareplus sparsemax -> -
CrossEntropyLoss cross_entropy softmax_cross_entropy_with_logits -> nn.softmax_cross_entropy | of logits; a loss for each example: ll.mean of it
sparse_softmax_cross_entropy_with_logits -> nn.softmax_cross_entropy | logits first; labels may be classes
CategoricalCrossentropy SparseCategoricalCrossentropy categorical_crossentropy -> nn.softmax_cross_entropy | of logits
sparse_categorical_crossentropy -> nn.softmax_cross_entropy | of logits, which come first
BCEWithLogitsLoss binary_cross_entropy_with_logits sigmoid_cross_entropy_with_logits -> nn.sigmoid_cross_entropy | logits first
BCELoss binary_cross_entropy BinaryCrossentropy binary_crossentropy -> nn.sigmoid_cross_entropy | of logits, not of probabilities
weighted_cross_entropy_with_logits -> nn.sigmoid_cross_entropy | logits first; times ll.where(labels == 1, weight, 1.0)
NLLLoss nll_loss -> nn.nll
MSELoss mse_loss MSE mse -> nn.mean_squared_error
L1Loss l1_loss MAE mae -> nn.mean_absolute_error
SmoothL1Loss smooth_l1_loss HuberLoss huber_loss -> nn.huber
kl_div KLDivLoss KLD KLDivergence kld kullback_leibler_divergence -> nn.kl_divergence | log-probabilities first
HingeEmbeddingLoss hinge_embedding_loss squared_hinge categorical_hinge SquaredHinge -> -
CosineEmbeddingLoss cosine_embedding_loss -> nn.cosine_similarity | 1 - ll.nn.cosine_similarity(x, y), for pairs that belong together
TripletMarginLoss triplet_margin_loss ctc_loss CTCLoss MeanAbsolutePercentageError MAPE mape MSLE msle -> -
xavier_uniform xavier_uniform_ GlorotUniform -> nn.initializers.glorot_uniform
xavier_normal xavier_normal_ GlorotNormal -> nn.initializers.glorot_normal
kaiming_uniform kaiming_uniform_ HeUniform -> nn.initializers.he_uniform
kaiming_normal kaiming_normal_ HeNormal -> nn.initializers.he_normal
trunc_normal_ TruncatedNormal -> nn.initializers.truncated_normal
RandomNormal random_normal_initializer -> nn.initializers.normal
RandomUniform random_uniform_initializer variance_scaling VarianceScaling -> -
zeros_initializer -> nn.initializers.zeros
ones_initializer -> nn.initializers.ones
constant_initializer -> nn.initializers.constant
Nadam NAdam RAdam Adamax Adadelta Adafactor ASGD Rprop Ftrl Lamb Lion Muon LBFGS -> -
clip_grad_norm_ clip_grad_norm -> optim.clip_by_global_norm
clip_grad_value_ -> optim.clip_by_value
CosineDecay CosineAnnealingLR -> optim.schedules.Cosine
ExponentialDecay ExponentialLR -> optim.schedules.Exponential
PolynomialDecay PolynomialLR LinearLR -> optim.schedules.Polynomial
StepLR MultiStepLR PiecewiseConstantDecay -> optim.schedules.Step
ConstantLR -> optim.schedules.Constant
"""

_TENSORS: Final = """
backward -> | gradients are asked of a tape: `with ll.GradientTape() as tape: ...`, then tape.gradient(loss, x); or ll.grad(f)(x)
grad -> | gradients are results, not attributes: g = tape.gradient(loss, x), or ll.grad(f)(x)
grad_fn is_leaf retain_grad register_hook -> | what a tape has recorded shows `%tape` in a notebook; ll.explain.why_none(tape, y, x) says why a gradient is None
requires_grad requires_grad_ -> | a tape watches variables by itself, and tensors when told to: tape.watch(x)
detach -> | write ll.stop_gradient(x)
clone copy contiguous -> | tensors are immutable: use x itself
data value values -> | the value is x.numpy(), as an array; x itself without its gradient is ll.stop_gradient(x)
view -> | write x.reshape(shape)
view_as reshape_as -> | write x.reshape(y.shape)
flatten -> | write x.reshape(-1)
unflatten resize -> | write x.reshape(shape)
permute -> | write x.transpose((1, 0)), with the axes as a tuple
t -> | write x.T, or x.mT of many matrices
H mH adjoint -> | write x.mT.conj()
unsqueeze -> | write x.expand_dims(axis)
cuda -> | write x.gpu()
float -> | write x.astype(ll.float32)
double -> | write x.astype(ll.float64)
half -> | write x.astype(ll.float16)
long -> | write x.astype(ll.int64)
int -> | write x.astype(ll.int32)
short -> | write x.astype(ll.int16)
bool -> | write x.astype(ll.bool_)
type type_as -> | write x.astype(dtype)
assign -> | tensors are immutable; what changes is a variable: v = ll.Variable(x), v.assign(value)
assign_add -> | tensors are immutable; what changes is a variable: v = ll.Variable(x), v.assign_add(value)
assign_sub -> | tensors are immutable; what changes is a variable: v = ll.Variable(x), v.assign_sub(value)
add_ -> | tensors are immutable: write x = x + y
sub_ -> | tensors are immutable: write x = x - y
mul_ -> | tensors are immutable: write x = x * y
div_ -> | tensors are immutable: write x = x / y
zero_ -> | tensors are immutable: write ll.zeros_like(x)
copy_ fill_ put masked_fill_ index_add_ scatter_ -> | tensors are immutable: write x = x.at[index].set(value)
clamp_ -> | tensors are immutable: write x = x.clip(min, max)
fill -> | tensors are immutable: write ll.full_like(x, value)
setflags strides stride data_ptr storage flat flags -> | the memory is NumPy's: x.numpy() is a read-only view of it
add -> | write x + y
sub subtract -> | write x - y
mul multiply -> | write x * y
div divide true_divide -> | write x / y
floor_divide -> | write x // y
remainder fmod -> | write x % y
pow -> | write x ** y
neg negative -> | write -x
eq equal -> | write x == y
ne not_equal -> | write x != y
lt less -> | write x < y
le less_equal -> | write x <= y
gt greater -> | write x > y
ge greater_equal -> | write x >= y
matmul mm bmm mv -> | write x @ y
dot -> | write x @ y, or ll.dot(x, y)
clamp -> | write x.clip(min, max)
clamp_min -> | write x.clip(min=low)
clamp_max -> | write x.clip(max=high)
numel nelement -> | write x.size
dim ndimension rank -> | write x.ndim
get_shape -> | write x.shape
itemsize element_size -> | write x.dtype.itemsize
expand -> | write x.broadcast_to(shape)
expand_as -> | write x.broadcast_to(y.shape)
masked_fill -> | write ll.where(mask, value, x)
masked_select -> | write x[mask]
index_select -> | write ll.take(x, indices, axis=axis)
select narrow -> | write x[start:stop]
repeat_interleave -> | write ll.repeat(x, n)
new_zeros -> | write ll.zeros(shape, dtype=x.dtype)
new_ones -> | write ll.ones(shape, dtype=x.dtype)
new_full new_tensor -> | write ll.full(shape, value, dtype=x.dtype)
sigmoid_ relu_ exp_ tanh_ -> | tensors are immutable: write x = x.exp()
tostring tobytes tofile dump -> | write x.numpy().tobytes()
is_floating_point is_complex -> | write ll.isdtype(x.dtype, "real floating")
block_until_ready -> | ops have run when they return: use x itself
"""

_TENSOR_FUNCTIONS: Final = """
norm=linalg.norm inverse=linalg.inv pinverse=linalg.pinv det=linalg.det logdet=linalg.logdet svd=linalg.svd qr=linalg.qr
cholesky=linalg.cholesky slogdet=linalg.slogdet trace=linalg.trace cross=linalg.cross matrix_power=linalg.matrix_power
matrix_exp=linalg.expm relu=nn.relu softmax=nn.softmax log_softmax=nn.log_softmax prelu=nn.prelu topk=top_k
unbind=unstack chunk=split absolute=abs amax=max amin=min arccos=acos arcsin=asin arctan=atan unique=unique_values
conjugate=conj rsqrt isnan isinf isfinite log1p log2 log10 expm1 floor ceil trunc sinh cosh tan acos asin atan acosh
asinh atanh atan2 erf erfc erfinv logsumexp median quantile cummax cummin gather scatter split roll flip tile repeat
unstack diag diagonal tril triu outer kron nonzero bincount take swapaxes moveaxis maximum minimum logical_and logical_or
logical_not logical_xor bitwise_and bitwise_or bitwise_xor isclose allclose reciprocal real imag hypot xlogy
count_nonzero searchsorted nan_to_num logaddexp tensordot einsum one_hot stack concat zeros_like ones_like cosh
"""
"""Functions of ours that other libraries have as methods, and methods of theirs that are functions of ours."""

_MODULES: Final = """
parameters get_weights -> | write module.trainable_variables, which is a list
named_parameters -> | write module.named_variables()
state_dict -> | write dict(module.named_variables())
load_state_dict set_weights -> | write `for name, v in module.named_variables(): v.assign(saved[name])`
save_weights save load_weights -> | write np.savez(path, **{name: v.numpy() for name, v in module.named_variables()})
zero_grad -> | gradients are results here, and nothing needs to be reset
forward -> | write module(x); subclasses define call(self, x)
weights -> | write module.variables
trainable_weights -> | write module.trainable_variables
non_trainable_variables non_trainable_weights buffers -> | write [v for v in module.variables if not v.trainable]
add_weight register_parameter register_buffer -> | write self.name = ll.Variable(value): modules find their attributes
add_module register_module -> | write self.name = module: modules find their attributes
children modules submodules named_children named_modules layers -> | write dict(module.edges()), the direct children
train -> | modules have no mode: write model(x, training=True), where a layer asks for it
eval -> | modules have no mode: a call means training=False unless it says otherwise
compile -> | write step = ll.function(step); losses and optimisers are called in it
fit -> | write the loop: `with ll.GradientTape() as tape: loss = ...`, then optimizer.apply(tape.gradient(loss, variables), variables)
predict evaluate -> | write model(x)
summary count_params -> | print(model) shows the layers; ll.memory_info() counts bytes
to cuda -> | make the module under `with ll.device("GPU:0"):`
apply_fn -> -
"""

_OPTIMIZERS: Final = """
apply_gradients -> | write optimizer.apply(gradients, variables): two lists, not one of pairs
minimize -> | write `with ll.GradientTape() as tape: loss = ...`, then optimizer.apply(tape.gradient(loss, variables), variables)
update -> | write optimizer.apply(gradients, variables), which changes the variables
param_groups lr -> | write optimizer.learning_rate; other settings are attributes, too
iterations -> | write optimizer.step
init -> | optimisers make their state when they are first applied
"""

_SETTINGS: Final = """
kernel_size pool_size kernel_shape filter_size -> window
strides -> stride
out_channels -> filters
dilation_rate rhs_dilation -> dilation
feature_group_count -> groups
out_features units_out num_units hidden_size -> units
num_embeddings input_dim -> count
embedding_dim output_dim embedding_size -> units
bias -> use_bias
num_heads nhead -> heads
p rate_drop -> rate
eps -> epsilon
embeddings_initializer -> table_initializer
input_shape in_features in_channels input_size num_features features_in -> | sizes of inputs are not given: the first call finds them
data_format -> | the channels are the last axis
name device -> -
"""
"""Settings of layers."""

_OPTIMIZER_SETTINGS: Final = """
lr rate learn_rate step_size -> learning_rate
eps -> epsilon
beta_1 b1 -> beta1
beta_2 b2 -> beta2
rho alpha -> decay
params parameters variables -> | optimisers are given the variables when they are applied: optimizer.apply(gradients, variables)
betas -> | write beta1=..., beta2=...
momentum nesterov -> | write ll.optim.Momentum(learning_rate, momentum)
weight_decay wd -> | write ll.optim.AdamW(learning_rate, weight_decay=...)
clipnorm clipvalue global_clipnorm -> | write ll.optim.clip_by_global_norm(gradients, norm)
"""
"""Settings of optimisers."""

_KEYWORDS: Final = """
dim -> axis axes
dims -> axes axis repetitions
axes -> axis
axis -> axes
reduction_indices reduction_axes -> axis
keepdim keep_dims -> keepdims
unbiased ddof -> correction
a_min clip_value_min min_value -> min
a_max clip_value_max max_value -> max
newshape -> shape
size sample_shape -> shape
minval a_low -> low
maxval -> high
loc mu -> mean
sigma -> stddev
std -> stddev
repeats reps multiples -> repetitions
pad_width paddings -> widths
constant_values -> value
condition -> pred
num_outputs -> num
concat_dim -> axis
"""
"""What keywords of functions are called here, the likeliest first."""


@functools.cache
def functions() -> Mapping[str, Equivalent]:
    """By what others have in any namespace."""
    return _parsed(_FUNCTIONS)


@functools.cache
def of_tensors() -> Mapping[str, str]:
    """Methods and attributes of other libraries' tensors."""
    hints = {name: entry.remark for name, entry in _parsed(_TENSORS).items()}
    for pair in _TENSOR_FUNCTIONS.split():
        name, _, ours = pair.partition("=")
        hints.setdefault(name, f"write ll.{ours or name}(x)")
    return hints


@functools.cache
def of_modules() -> Mapping[str, str]:
    """Methods and attributes of other libraries' modules."""
    return {name: entry.remark for name, entry in _parsed(_MODULES).items() if entry}


@functools.cache
def of_optimizers() -> Mapping[str, str]:
    """The same of optimisers."""
    return {**of_modules(), **{name: entry.remark for name, entry in _parsed(_OPTIMIZERS).items()}}


@functools.cache
def layer_settings() -> Mapping[str, Equivalent]:
    """What the constructors of layers call their settings."""
    return _parsed(_SETTINGS)


@functools.cache
def optimizer_settings() -> Mapping[str, Equivalent]:
    """What the constructors of optimisers call their settings."""
    return _parsed(_OPTIMIZER_SETTINGS)


def setting_hint(name: str, known: Iterable[str], table: Mapping[str, Equivalent]) -> str:
    """What to write instead of the setting `name`, where `known` are those there are; "" where nothing does its job."""
    entry, known = table.get(name), list(known)
    if entry is None:
        import difflib  # noqa: PLC0415  # only a mistake needs it: importing limelight is to be quick

        close = difflib.get_close_matches(name, known, 1)
        return f"; did you mean {close[0]!r}?" if close else "."
    if entry.ours:
        return f"; did you mean {entry.ours!r}?" if entry.ours in known else "."
    return f": {entry.remark}." if entry.remark else "."


@functools.cache
def keywords() -> Mapping[str, tuple[str, ...]]:
    """What keywords of functions are called here."""
    return {name: tuple(entry.ours.split()) for name, entry in _parsed(_KEYWORDS).items()}


def _parsed(table: str) -> dict[str, Equivalent]:
    rows: dict[str, Equivalent] = {}
    for line in table.strip().splitlines():
        names, _, answer = line.partition(" -> ")
        ours, _, remark = answer.partition("|")
        row = Equivalent(ours.strip().removesuffix("-"), remark.strip())
        rows |= dict.fromkeys(names.split(), row)
    return rows
