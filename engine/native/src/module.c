/* The module limelight_native: loops, tables that call them, convolutions and normalisation. */
#define LIMELIGHT_IMPORTS_NUMPY
#include "columns.h"
#include "convolution.h"
#include "loop.h"
#include "placing.h"
#include "pooling.h"
#include "storage.h"
#include "templates.h"
#include "workers.h"

static PyMethodDef functions[] = {
    {"ufunc_loop", loop_of_ufunc, METH_VARARGS,
     "ufunc_loop(ufunc, types): its loop for these type numbers, as bytes, results last; None where it has none."},
    {"copy_loop", loop_of_copy, METH_VARARGS,
     "copy_loop(from, to): a loop that copies, and casts between two type numbers; None where there is none."},
    {"where_loop", loop_of_where, METH_VARARGS,
     "where_loop(type): a loop that takes x where a boolean is true, else y; None where there is none."},
    {"row_loop", loop_of_rows, METH_VARARGS,
     "row_loop(name, type, bytes): a loop that picks rows at places ('gather'), writes them ('put') or adds to them "
     "('add'); None where there is none."},
    {"place_loop", loop_of_places, METH_VARARGS,
     "place_loop(from_end): a loop that counts places from the front, and says whether they are there."},
    {"use_storage", use_storage, METH_VARARGS,
     "use_storage(type, told): variables are objects of this type; `told` is not empty where assignments are told."},
    {"use_records", use_records, METH_VARARGS,
     "use_records(View, Instruction, Guard, Buffer): the types that the engine writes tables with."},
    {"pattern", pattern_of, METH_VARARGS,
     "pattern(what, params, operands): the key of a template; None where equal parameters may mean something else."},
    {"take_known", take_known, METH_VARARGS,
     "take_known(nodes, start, known, views, missing, here, instructions, ends): writes nodes whose templates are known; "
     "returns the number of the first one whose is not."},
    {"last_uses", last_uses, METH_VARARGS, "last_uses(items): the number of the last item that each buffer is in."},
    {"endings", endings, METH_VARARGS,
     "endings(last, where, count): for each item a list of the buffers that end there and have no place yet, or None."},
    {"write_calls", write_calls, METH_VARARGS,
     "write_calls(items, start, where, ending, free, place, large, long, new, give_back, written): writes instructions "
     "over few elements with the places of their operands; returns the number of the first item that is none."},
    {"convolve", convolve, METH_VARARGS,
     "convolve(x, w, y, stride, dilation, pads, threads): writes into y the convolution of x (images, *space, channels) "
     "with w (*window, channels, filters); three spatial axes, float32."},
    {"convolve_filters", convolve_filters, METH_VARARGS,
     "convolve_filters(x, w, y, stride, dilation, pads, threads): writes into w the gradient of the filters, where y is "
     "that of the convolution."},
    {"normalise_columns", normalise_columns, METH_VARARGS,
     "normalise_columns(x, scale, offset, epsilon, threads): (x - mean) / sqrt(variance + epsilon) * scale + offset, the "
     "mean and the variance over all axes but the last. float32; None stands for a scale of 1, an offset of 0."},
    {"normalise_columns_gradient", normalise_columns_gradient, METH_VARARGS,
     "normalise_columns_gradient(h, x, mean, variance, scale, epsilon, threads): the gradients for x, scale and offset "
     "where h is that of the first result of normalise_columns; without moments x are the scores. float32."},
    {"max_pool_gradient", max_pool_gradient, METH_VARARGS,
     "max_pool_gradient(g, x, y, window, stride, before, threads): what g gives to x (images, *space, channels), where y is "
     "the largest of each window; equals share it. Three spatial axes, float32."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "limelight_native",
    .m_doc = "Runs NumPy's inner loops from tables: the executor `loops` of limelight makes them.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_limelight_native(void)
{
    import_array();
    import_umath();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddType(module, &LoopType) < 0 || PyModule_AddType(module, &TableType) < 0 ||
        PyModule_AddType(module, &TemplateType) < 0 ||
        PyModule_AddIntMacro(module, MOST_THREADS) < 0 ||
        PyModule_AddObjectRef(module, "convolves", tile_of_processor() == NULL ? Py_False : Py_True) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
