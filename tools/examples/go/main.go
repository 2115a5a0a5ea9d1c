// Trains a model of the tree from Go, by the C API; Ctrl-C ends the fit at its last complete step.
//
//	export CGO_CFLAGS="$(pkg-config --cflags tenon)" CGO_LDFLAGS="$(pkg-config --libs tenon)"
//	go run . ../../../models/mnist_mlp/train.yaml [folder of MNIST's files]
package main

/*
#include <stdlib.h>
#include <tenon/runtime.h>
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"unsafe"
)

// check turns an error of the API into one of Go and releases it.
func check(failure *C.TenonError) error {
	if failure == nil {
		return nil
	}
	defer C.tenon_release(unsafe.Pointer(failure))
	return errors.New(C.GoString(C.tenon_error_message(failure)))
}

// taken copies a text of the API and frees it.
func taken(text *C.char) string {
	defer C.tenon_string_free(text)
	return C.GoString(text)
}

type history struct {
	End    string
	Epochs []struct {
		Epoch   int
		Logs    map[string]float64
		Seconds float64
	}
}

func load(definition string, part C.uint32_t) (*C.TenonData, error) {
	text := C.CString(definition)
	defer C.free(unsafe.Pointer(text))
	var data *C.TenonData
	err := check(C.tenon_data_load(text, part, &data))
	return data, err
}

func run(modelFile, definition string) error {
	var context *C.TenonContext
	if err := check(C.tenon_context_create(nil, &context)); err != nil {
		return err
	}
	defer C.tenon_release(unsafe.Pointer(context))

	path := C.CString(modelFile)
	defer C.free(unsafe.Pointer(path))
	var model *C.TenonModel
	if err := check(C.tenon_model_load(context, path, nil, &model)); err != nil {
		return err
	}
	defer C.tenon_release(unsafe.Pointer(model))

	train, err := load(definition, C.TENON_DATA_TRAIN)
	if err != nil {
		return err
	}
	defer C.tenon_release(unsafe.Pointer(train))
	test, err := load(definition, C.TENON_DATA_TEST)
	if err != nil {
		return err
	}
	defer C.tenon_release(unsafe.Pointer(test))

	var cancellation *C.TenonCancellation
	if err := check(C.tenon_cancellation_create(&cancellation)); err != nil {
		return err
	}
	defer C.tenon_release(unsafe.Pointer(cancellation))
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-interrupt:
			_ = check(C.tenon_cancel(cancellation))
		case <-done:
		}
	}()

	// The struct has a pointer to memory of C alone, so it may be passed as it is.
	options := (*C.TenonRunOptions)(C.calloc(1, C.sizeof_TenonRunOptions))
	defer C.free(unsafe.Pointer(options))
	options.struct_size = C.sizeof_TenonRunOptions
	options.cancellation = cancellation
	fit := C.CString("{epochs: 2, batch_size: 100}")
	defer C.free(unsafe.Pointer(fit))
	var text *C.char
	err = check(C.tenon_model_fit(model, train, test, fit, nil, options, &text))
	close(done)
	<-finished
	if err != nil {
		return err
	}
	var trained history
	if err := json.Unmarshal([]byte(taken(text)), &trained); err != nil {
		return err
	}
	for _, epoch := range trained.Epochs {
		fmt.Printf("epoch %d: loss %.4f, val_accuracy %.4f, %.1f s\n", epoch.Epoch+1, epoch.Logs["loss"], epoch.Logs["val_accuracy"], epoch.Seconds)
	}
	fmt.Println(trained.End)
	return nil
}

func main() {
	modelFile, definition := "models/mnist_mlp/train.yaml", "{source: digits, train_count: 10000, test_count: 1000}"
	if len(os.Args) > 1 {
		modelFile = os.Args[1]
	}
	if len(os.Args) > 2 {
		folder, _ := json.Marshal(os.Args[2])
		definition = fmt.Sprintf("{source: mnist, directory: %s}", folder)
	}
	if err := run(modelFile, definition); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if alive := C.tenon_object_count(); alive != 0 {
		fmt.Fprintln(os.Stderr, alive, "objects are alive")
		os.Exit(1)
	}
}
