module train_mnist

go 1.19
